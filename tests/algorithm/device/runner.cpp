// Loads a library of kernels and calls launchers on buffers that lie between pages which no one may touch.
#include <dlfcn.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <vector>
#include "ks_switch.h"

// For the kernels, which are compiled without optimisation and on a header that may hold no assembler.
extern "C" void* begin_stack(void* top, void (*entry)()) { return ks::begin_stack(top, entry); }

static void read_all(void* to, size_t n) {
    for (char* p = (char*)to; n;) {
        ssize_t got = read(0, p, n);
        if (got <= 0) std::_Exit(9);
        p += got; n -= got;
    }
}
static void write_all(const void* from, size_t n) {
    for (const char* p = (const char*)from; n;) {
        ssize_t put = write(1, p, n);
        if (put <= 0) std::_Exit(9);
        p += put; n -= put;
    }
}
static std::string read_text() {
    uint32_t n; read_all(&n, 4);
    std::string s(n, 0); read_all(&s[0], n);
    return s;
}
struct Argument { void* value; char* data; uint64_t bytes; uint64_t scalar[4]; };

int main(int argc, char** argv) {
    void* library = dlopen(argv[1], RTLD_NOW);
    if (!library) { std::fprintf(stderr, "%s\n", dlerror()); return 8; }
    const size_t page = 4096;
    uint32_t calls; read_all(&calls, 4);
    for (uint32_t call = 0; call < calls; ++call) {
        auto symbol = (void (*)(void**, int))dlsym(library, read_text().c_str());
        if (!symbol) return 7;
        uint32_t reversed, count; read_all(&reversed, 4); read_all(&count, 4);
        std::vector<Argument> arguments(count);
        for (auto& a : arguments) {
            uint32_t kind; read_all(&kind, 4);  // 0 scalar, 1 at the end of its pages, 2 at their start, 3 inside another
            read_all(&a.bytes, 8);
            if (kind == 0) { a.data = nullptr; read_all(a.scalar, a.bytes); continue; }
            if (kind == 3) {
                uint32_t of; uint64_t offset; read_all(&of, 4); read_all(&offset, 8);
                a.data = arguments[of].data + (int64_t)offset; a.bytes = 0; a.value = a.data;
                continue;
            }
            const size_t inside = (a.bytes + page - 1) / page * page + page;
            char* base = (char*)mmap(nullptr, inside + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            std::memset(base, 0xff, inside + 2 * page);
            mprotect(base, page, PROT_NONE);
            mprotect(base + page + inside, page, PROT_NONE);
            a.data = kind == 1 ? base + page + inside - a.bytes : base + page;
            a.value = a.data;
            read_all(a.data, a.bytes);
        }
        std::vector<void*> values;
        for (auto& a : arguments) values.push_back(a.data ? (void*)&a.value : (void*)a.scalar);
        symbol(values.data(), reversed);
        for (auto& a : arguments) if (a.data) write_all(a.data, a.bytes);
    }
    return 0;
}
