/* Writes down what a process does to the files below a folder, with their content, in the order in
   which it happens. Preloaded: LD_PRELOAD=recorder.so RECORD_BELOW=/folder RECORD_TO=/log */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

static void put(const char* op, const char* path, const char* other, long at, const void* data,
                size_t size) {
  static int out = -1;
  if (out < 0) {
    const char* to = getenv("RECORD_TO");
    if (!to) return;
    out = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  char line[9000];
  const int length = snprintf(line, sizeof line, "%s\t%ld\t%zu\t%s\t%s\n", op, at, size, path, other);
  syscall(SYS_write, out, line, (size_t)length);
  for (size_t done = 0; done < size;) {
    const long wrote = syscall(SYS_write, out, (const char*)data + done, size - done);
    if (wrote <= 0) abort();
    done += (size_t)wrote;
  }
}

static int below(const char* path) {
  const char* root = getenv("RECORD_BELOW");
  return root && strncmp(path, root, strlen(root)) == 0;
}

/* The path of a descriptor; empty for what is no file below the folder. */
static const char* of(int fd, char* path, size_t room) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, room - 1);
  path[size < 0 ? 0 : size] = 0;
  if (size < 0 || !below(path)) path[0] = 0;
  return path;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define RECORDED(type, call, note)          \
  pthread_mutex_lock(&order);               \
  const type result = call;                 \
  const int failed = errno;                 \
  if (result >= 0) note;                    \
  pthread_mutex_unlock(&order);             \
  errno = failed;                           \
  return result

static void opened(int fd, int flags) {
  char path[4096];
  if (!of(fd, path, sizeof path)[0] || (flags & O_ACCMODE) == O_RDONLY) return;
  put(flags & O_TRUNC ? "empty" : "make", path, "", 0, "", 0);
}

#define OPEN(name)                                                  \
  int name(const char* path, int flags, ...) {                      \
    va_list rest;                                                   \
    va_start(rest, flags);                                          \
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                   \
    REAL(name);                                                     \
    RECORDED(int, real(path, flags, mode), opened(result, flags));  \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void* data, size_t size) {
  REAL(write);
  char path[4096];
  if (!of(fd, path, sizeof path)[0]) return real(fd, data, size);
  pthread_mutex_lock(&order);
  struct stat now;
  const int append = fcntl(fd, F_GETFL) & O_APPEND;
  const long at = append && fstat(fd, &now) == 0 ? (long)now.st_size : (long)lseek(fd, 0, SEEK_CUR);
  const ssize_t result = real(fd, data, size);
  const int failed = errno;
  if (result > 0) put("write", path, "", at, data, (size_t)result);
  pthread_mutex_unlock(&order);
  errno = failed;
  return result;
}

#define CUT(name, kind)                                                             \
  int name(int fd, kind size) {                                                     \
    REAL(name);                                                                     \
    char path[4096];                                                                \
    of(fd, path, sizeof path);                                                      \
    RECORDED(int, real(fd, size), if (path[0]) put("cut", path, "", (long)size, "", 0)); \
  }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

#define SYNC(name)                                                                    \
  int name(int fd) {                                                                  \
    REAL(name);                                                                       \
    char path[4096];                                                                  \
    of(fd, path, sizeof path);                                                        \
    RECORDED(int, real(fd), if (path[0]) put("sync", path, "", 0, "", 0));            \
  }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char* from, const char* to) {
  REAL(rename);
  RECORDED(int, real(from, to), if (below(to)) put("rename", from, to, 0, "", 0));
}

int unlink(const char* path) {
  REAL(unlink);
  RECORDED(int, real(path), if (below(path)) put("unlink", path, "", 0, "", 0));
}

int mkdir(const char* path, mode_t mode) {
  REAL(mkdir);
  RECORDED(int, real(path, mode), if (below(path)) put("mkdir", path, "", 0, "", 0));
}
