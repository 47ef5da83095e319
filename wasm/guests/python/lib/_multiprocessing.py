raise ImportError("this interpreter has no multiprocessing: processes here are started by subprocess, and share no memory", name="_multiprocessing")
