/* Records what a process writes to one store of SQLite, and when the disk has it: LD_PRELOAD, DISK_JOURNAL, DISK_STORE.
 *
 * The journal has a record for each write, each cut and each flush of the store's file and of its write-ahead log. That of a
 * flush says how long the journal was when the flush began: what was written before is on the disk. Records of several
 * processes are appended whole.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE, CUT, FLUSH };

struct record {
    uint32_t kind;
    uint32_t file; /* 0 the store, 1 its write-ahead log */
    uint64_t offset;
    uint64_t length; /* of the data behind a record of a write */
};

static int journal = -1;
static char store[PATH_MAX], ahead[PATH_MAX + 8];

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("DISK_JOURNAL"), *watched = getenv("DISK_STORE");
    if (!path || !watched) return;
    snprintf(store, sizeof store, "%s", watched);
    snprintf(ahead, sizeof ahead, "%s-wal", watched);
    journal = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (journal < 0) abort();
}

static int file_of(int descriptor) {
    char link[64], path[PATH_MAX + 8];
    if (journal < 0) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return -1;
    path[length] = 0;
    return !strcmp(path, store) ? 0 : !strcmp(path, ahead) ? 1 : -1;
}

static void append(enum kind kind, int file, uint64_t offset, const void *data, uint64_t length) {
    struct record record = {kind, (uint32_t)file, offset, length};
    struct iovec parts[2] = {{&record, sizeof record}, {(void *)data, data ? length : 0}};
    if (writev(journal, parts, 2) != (ssize_t)(sizeof record + parts[1].iov_len)) abort();
}

static uint64_t recorded(void) {
    struct stat found;
    if (fstat(journal, &found)) abort();
    return (uint64_t)found.st_size;
}

static ssize_t written(int descriptor, const void *data, ssize_t count, off64_t offset) {
    int file = count > 0 ? file_of(descriptor) : -1;
    if (file >= 0) append(WRITE, file, (uint64_t)offset, data, (uint64_t)count);
    return count;
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    return written(descriptor, data, real(descriptor, data, size, offset), offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
    return pwrite64(descriptor, data, size, offset);
}

ssize_t write(int descriptor, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    int file = file_of(descriptor);
    off64_t offset = file < 0 ? 0 : lseek64(descriptor, 0, SEEK_CUR);
    ssize_t count = real(descriptor, data, size);
    return file < 0 ? count : written(descriptor, data, count, offset);
}

static int cut(int descriptor, off64_t size, const char *name) {
    int (*real)(int, off64_t) = dlsym(RTLD_NEXT, name);
    int failed = real(descriptor, size), file = failed ? -1 : file_of(descriptor);
    if (file >= 0) append(CUT, file, (uint64_t)size, NULL, 0);
    return failed;
}

int ftruncate64(int descriptor, off64_t size) { return cut(descriptor, size, "ftruncate64"); }
int ftruncate(int descriptor, off_t size) { return cut(descriptor, size, "ftruncate"); }

static int flush(int descriptor, const char *name) {
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    int file = file_of(descriptor);
    uint64_t begun = file < 0 ? 0 : recorded();
    int failed = real(descriptor);
    if (!failed && file >= 0) append(FLUSH, file, begun, NULL, 0);
    return failed;
}

int fsync(int descriptor) { return flush(descriptor, "fsync"); }
int fdatasync(int descriptor) { return flush(descriptor, "fdatasync"); }
