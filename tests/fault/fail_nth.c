// Lets the n-th call of one kind fail, for tests that look at what a program does then. Loaded with LD_PRELOAD; Linux only.
//
//     FAIL_CALL=write  which calls are counted: write (to files), fsync, rename (and link), mmap (of files), read and malloc (of
//                      FAIL_SIZE bytes or more, 0 unless given)
//     FAIL_NTH=3       the third of them fails: no space left, an error of the disk, no memory
//     FAIL_MARK=FILE   is created when that has happened, so that a caller knows when n was larger than the number of calls
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const char * call; // null: nothing fails
static long         nth;
static size_t       least_size;
static atomic_long  count;

__attribute__((constructor)) static void read_environment(void) {
    const char * n    = getenv("FAIL_NTH");
    const char * size = getenv("FAIL_SIZE");
    nth               = n ? atol(n) : 0;
    least_size        = size ? (size_t) atol(size) : 0;
    call              = getenv("FAIL_CALL");
    unsetenv("LD_PRELOAD"); // programs that this one starts are not under test
}

// Whether this call of a kind is the one. Neither allocates nor calls what is replaced below.
static int fails(const char * kind) {
    if (!call || strcmp(call, kind) != 0 || atomic_fetch_add(&count, 1) + 1 != nth) {
        return 0;
    }
    const char * mark = getenv("FAIL_MARK");
    if (mark) {
        const long fd = syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT, 0600);
        if (fd >= 0) {
            syscall(SYS_close, fd);
        }
    }
    return 1;
}

ssize_t write(int fd, const void * data, size_t size) {
    if (fd > STDERR_FILENO && fails("write")) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, fd, data, size);
}

ssize_t read(int fd, void * data, size_t size) {
    if (call && size >= least_size && fails("read")) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_read, fd, data, size);
}

ssize_t writev(int fd, const struct iovec * parts, int n) {
    if (fd > STDERR_FILENO && fails("write")) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_writev, fd, parts, n);
}

int fsync(int fd) {
    if (fails("fsync")) {
        errno = EIO;
        return -1;
    }
    return (int) syscall(SYS_fsync, fd);
}

int rename(const char * from, const char * to) {
    if (fails("rename")) {
        errno = EIO;
        return -1;
    }
    return (int) syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char * from, const char * to) {
    if (fails("rename")) {
        errno = EIO;
        return -1;
    }
    return (int) syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

void * mmap(void * address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && fails("mmap")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *) syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

extern void * __libc_malloc(size_t size);
extern void * __libc_calloc(size_t n, size_t size);
extern void * __libc_realloc(void * old, size_t size);
extern void * __libc_memalign(size_t alignment, size_t size);

static int no_memory(size_t size) {
    if (call && size >= least_size && fails("malloc")) {
        errno = ENOMEM;
        return 1;
    }
    return 0;
}

void * malloc(size_t size) {
    return no_memory(size) ? NULL : __libc_malloc(size);
}

void * calloc(size_t n, size_t size) {
    return no_memory(n * size) ? NULL : __libc_calloc(n, size);
}

void * realloc(void * old, size_t size) {
    return no_memory(size) ? NULL : __libc_realloc(old, size);
}

void * aligned_alloc(size_t alignment, size_t size) {
    return no_memory(size) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void ** result, size_t alignment, size_t size) {
    if (no_memory(size)) {
        return ENOMEM;
    }
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}
