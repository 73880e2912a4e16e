// What traced blocks did. (to come)
#include "ks_engine.h"
namespace ks {
struct Trace {};
Trace* trace_begin(BlockState&, const LaunchRequest&) { return new Trace; }
void trace_flush(Trace*, uint32_t) {}
void trace_end(Trace*) {}
void trace_delete(Trace* t) { delete t; }
}
using namespace ks;
extern "C" {
void ks_trace_access(Thread&, int32_t, uint64_t, uint32_t, int32_t, int32_t) {}
void ks_trace_block(Thread&, int32_t) {}
}
