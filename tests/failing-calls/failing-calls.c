/* Makes one system call fail, for a process that is started with LD_PRELOAD. A mapped file says which call, on which files, with which error and
 * how often, so that a test changes it while the process runs. Compiled by preload.ts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* META: writes of less than a page, which is how LMDB commits. */
enum { NONE, FDATASYNC, FSYNC, MSYNC, PWRITE, META, FTRUNCATE, OPEN, ACCEPT, MMAP, FORK };

/* In place of an error: the call does not return until the rule is gone, and then works. */
enum { HANGS = -1 };

/* The layout of preload.ts. `left` counts down; -1 is for ever. `path` is a part of the file's path; an empty one matches all. */
struct rule {
  volatile int32_t call, error, left, hits;
  char path[240];
};

static struct rule *rule;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("FAILING_CALLS");
  if (file == NULL) return;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) abort();
  void *(*map)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  rule = map(NULL, sizeof(struct rule), 3 /* read, write */, 1 /* shared */, fd, 0);
  if (rule == (void *)-1) abort();
  syscall(SYS_close, fd);
}

static int take(void) {
  for (;;) {
    int32_t left = rule->left;
    if (left == 0) return 0;
    if (left < 0 || __sync_bool_compare_and_swap(&rule->left, left, left - 1)) break;
  }
  __sync_fetch_and_add(&rule->hits, 1);
  if (rule->error == HANGS) {
    while (rule->call != NONE) usleep(5000);
    return 0;
  }
  errno = rule->error;
  return 1;
}

static int fails_at(int call, const char *path) {
  if (rule == NULL || rule->call != call) return 0;
  if (rule->path[0] != 0 && (path == NULL || strstr(path, (const char *)rule->path) == NULL)) return 0;
  return take();
}

static int fails_on(int call, int fd) {
  char link[40], path[PATH_MAX];
  if (rule == NULL || rule->call != call) return 0;
  if (rule->path[0] == 0) return take();
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fails_at(call, path);
}

#define ON_FILE(call, type, name, parameters, arguments)                                                                \
  type name parameters { return fails_on(call, fd) ? -1 : REAL(name) arguments; }

ON_FILE(FDATASYNC, int, fdatasync, (int fd), (fd))
ON_FILE(FSYNC, int, fsync, (int fd), (fd))
ON_FILE(PWRITE, ssize_t, write, (int fd, const void *bytes, size_t length), (fd, bytes, length))
ON_FILE(PWRITE, ssize_t, writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count))
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
  return fails_on(PWRITE, fd) || (length < 4096 && fails_on(META, fd)) ? -1 : REAL(pwrite)(fd, bytes, length, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
  return fails_on(PWRITE, fd) || (length < 4096 && fails_on(META, fd)) ? -1 : REAL(pwrite64)(fd, bytes, length, at);
}
ON_FILE(PWRITE, ssize_t, pwritev, (int fd, const struct iovec *pieces, int count, off_t at), (fd, pieces, count, at))
ON_FILE(PWRITE, ssize_t, pwritev64, (int fd, const struct iovec *pieces, int count, off64_t at), (fd, pieces, count, at))
ON_FILE(FTRUNCATE, int, ftruncate, (int fd, off_t length), (fd, length))
ON_FILE(FTRUNCATE, int, ftruncate64, (int fd, off64_t length), (fd, length))

/* A listening socket has no path: every one fails. */
int accept(int fd, struct sockaddr *address, socklen_t *length) {
  return rule != NULL && rule->call == ACCEPT && take() ? -1 : REAL(accept)(fd, address, length);
}
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
  return rule != NULL && rule->call == ACCEPT && take() ? -1 : REAL(accept4)(fd, address, length, flags);
}

/* A process has no path either: none can be started. */
pid_t fork(void) { return rule != NULL && rule->call == FORK && take() ? -1 : REAL(fork)(); }

/* Mapped memory has no descriptor any more: every msync fails. */
int msync(void *from, size_t length, int flags) {
  return rule != NULL && rule->call == MSYNC && take() ? -1 : REAL(msync)(from, length, flags);
}

/* Memory without a file is left alone: the runtime ends when it gets none. */
void *mmap(void *at, size_t length, int access, int flags, int fd, off_t from) {
  return fd >= 0 && fails_on(MMAP, fd) ? (void *)-1 : REAL(mmap)(at, length, access, flags, fd, from);
}
void *mmap64(void *at, size_t length, int access, int flags, int fd, off64_t from) {
  return fd >= 0 && fails_on(MMAP, fd) ? (void *)-1 : REAL(mmap64)(at, length, access, flags, fd, from);
}

#define MODE(flags)                                                                                                     \
  mode_t mode = 0;                                                                                                      \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                              \
    va_list rest;                                                                                                       \
    va_start(rest, flags);                                                                                              \
    mode = va_arg(rest, mode_t);                                                                                        \
    va_end(rest);                                                                                                       \
  }

int open(const char *path, int flags, ...) {
  MODE(flags)
  return fails_at(OPEN, path) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE(flags)
  return fails_at(OPEN, path) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  MODE(flags)
  return fails_at(OPEN, path) ? -1 : REAL(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
  MODE(flags)
  return fails_at(OPEN, path) ? -1 : REAL(openat64)(folder, path, flags, mode);
}
