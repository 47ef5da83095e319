// pthread.h for programs of one thread: a key is the address of its value, once is once.
#pragma once
#include <stdlib.h>
#include <sys/types.h>
#ifndef PTHREAD_ONCE_INIT
#define PTHREAD_ONCE_INIT 0
#endif
static inline int pthread_key_create(pthread_key_t *k, void (*f)(void *)) {
	void **value = calloc(1, sizeof *value);
	(void)f;
	*k = (pthread_key_t)value;
	return !value;
}
static inline int pthread_setspecific(pthread_key_t k, const void *v) { *(const void **)k = v; return 0; }
static inline void *pthread_getspecific(pthread_key_t k) { return *(void **)k; }
static inline int pthread_once(pthread_once_t *o, void (*f)(void)) {
	if (!*o) { *o = 1; f(); }
	return 0;
}
