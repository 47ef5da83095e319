raise ImportError("this interpreter has no ctypes: there are no native libraries to call in a sandbox", name="_ctypes")
