"""main.py MODULE: runs test.test_MODULE, with what CPython's tests take for granted that WASI lacks, and this interpreter has."""
import sys
import unittest

import test.support as support

support.is_wasi = False
support.has_subprocess_support = True
unittest.main(module="test.test_" + sys.argv[1], argv=["unittest", *sys.argv[2:]])
