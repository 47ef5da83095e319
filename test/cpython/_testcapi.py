"""Numbers that CPython's tests want of an extension for testing its C interface, which isn't built. What tests that interface is skipped or fails, as named in
run.sh."""

INT_MAX, INT_MIN, UINT_MAX = 2**31 - 1, -2**31, 2**32 - 1
LONG_MAX, LONG_MIN, ULONG_MAX = 2**31 - 1, -2**31, 2**32 - 1
LLONG_MAX, LLONG_MIN, ULLONG_MAX = 2**63 - 1, -2**63, 2**64 - 1
PY_SSIZE_T_MAX, PY_SSIZE_T_MIN, SIZE_MAX = 2**31 - 1, -2**31, 2**32 - 1
SHRT_MAX, SHRT_MIN, USHRT_MAX, UCHAR_MAX = 2**15 - 1, -2**15, 2**16 - 1, 255
