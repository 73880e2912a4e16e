#include "streams.h"

#include <cstring>
#include <map>
#include <memory>

#include "errors.h"

namespace recorder {
namespace {

struct Event {
  uint64_t id = 0;
  bool recorded = false;       // waiting for an event that was never recorded is no wait
  Capture* capture = nullptr;  // the capture it was last recorded in
};

std::map<void*, std::unique_ptr<Stream>> streams;
std::map<void*, std::unique_ptr<Event>> events;
std::map<void*, std::unique_ptr<Capture>> captures;
uint64_t next_stream = 1;
uint64_t next_event = 0;
uint64_t next_graph = 0;

Stream* legacy_stream() {
  static Stream stream = [] {
    Stream made;
    made.legacy = true;
    return made;
  }();
  return &stream;
}

Stream* create_stream(bool blocking) {
  auto made = std::make_unique<Stream>();
  made->id = next_stream++;
  made->blocking = blocking;
  Stream* stream = made.get();
  streams[stream] = std::move(made);
  Line("create_stream").number("stream", stream->id).flag("blocking", blocking).write();
  return stream;
}

Stream* per_thread_stream() {
  static Stream* stream = create_stream(true);
  return stream;
}

Event* find_event(cudaEvent_t handle) {
  const auto found = events.find(handle);
  return found == events.end() ? nullptr : found->second.get();
}

cudaError_t bad_handle(const char* what) {
  return fail(cudaErrorInvalidResourceHandle, std::string(what) + " with an unknown handle");
}

// An open capture, if any; `blocking_only` leaves out captures that the legacy stream does not touch.
Capture* open_capture(bool blocking_only) {
  for (const auto& [handle, capture] : captures) {
    if (!capture->open) continue;
    const Stream* origin = static_cast<Stream*>(capture->origin);
    if (!blocking_only || origin->blocking) return capture.get();
  }
  return nullptr;
}

cudaError_t make_event(cudaEvent_t* out) {
  auto made = std::make_unique<Event>();
  made->id = next_event++;
  *out = reinterpret_cast<cudaEvent_t>(made.get());
  events[made.get()] = std::move(made);
  return cudaSuccess;
}

cudaError_t record_event(cudaEvent_t handle, cudaStream_t stream_handle) {
  Event* event = find_event(handle);
  if (event == nullptr) return bad_handle("cudaEventRecord");
  Stream* stream = nullptr;
  if (const cudaError_t code = ready_for_work(stream_handle, "cudaEventRecord", &stream)) return code;
  event->recorded = true;
  event->capture = stream->capture;
  operation_on("record_event", *stream).number("event", event->id).write();
  return cudaSuccess;
}

cudaError_t wait_event(cudaStream_t stream_handle, cudaEvent_t handle) {
  Event* event = find_event(handle);
  if (event == nullptr) return bad_handle("cudaStreamWaitEvent");
  Stream* stream = find_stream(stream_handle);
  if (stream == nullptr) return bad_handle("cudaStreamWaitEvent");
  if (!event->recorded) return cudaSuccess;
  const bool captured = event->capture != nullptr && event->capture->open;
  if (captured && stream->capture == nullptr && !stream->legacy) stream->capture = event->capture;
  if (stream->capture != nullptr && event->capture != stream->capture) {
    stream->capture->invalid = true;
    return fail(captured ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation,
                "a captured stream waits for an event from outside its capture");
  }
  if (const cudaError_t code = ready_for_work(stream_handle, "cudaStreamWaitEvent", &stream)) return code;
  operation_on("wait_event", *stream).number("event", event->id).write();
  return cudaSuccess;
}

void synchronize(const char* scope, uint64_t stream, uint64_t event) {
  count_operation();
  Line("synchronize").text("scope", scope).number("stream", stream).number("event", event).write();
}

cudaError_t end_capture(cudaStream_t handle, cudaGraph_t* out) {
  Stream* stream = find_stream(handle);
  if (stream == nullptr) return bad_handle("cudaStreamEndCapture");
  Capture* capture = stream->capture;
  *out = nullptr;
  if (capture == nullptr) return fail(cudaErrorIllegalState, "cudaStreamEndCapture without a capture");
  if (capture->origin != stream)
    return fail(cudaErrorStreamCaptureUnmatched, "cudaStreamEndCapture on another stream than it began on");
  capture->open = false;
  for (const auto& [key, other] : streams)
    if (other->capture == capture) other->capture = nullptr;
  stream->capture = nullptr;
  if (capture->invalid)
    return fail(cudaErrorStreamCaptureInvalidated, "a call that cannot be captured happened during the capture");
  *out = reinterpret_cast<cudaGraph_t>(capture);
  return cudaSuccess;
}

cudaError_t launch_graph(cudaGraphExec_t executable, cudaStream_t handle) {
  const auto found = captures.find(executable);
  if (found == captures.end()) return bad_handle("cudaGraphLaunch");
  const Capture& capture = *found->second;
  Stream* stream = nullptr;
  if (const cudaError_t code = ready_for_work(handle, "cudaGraphLaunch", &stream)) return code;
  if (stream->capture != nullptr) refuse("a graph launched inside a captured graph", Direct::possible);
  for (const CapturedHostCopy& copy : capture.host_copies)
    if (std::memcmp(copy.source, copy.bytes.data(), copy.bytes.size()) != 0)
      refuse("host memory of a captured copy changed between the capture and the launch of the graph",
             Direct::possible);
  operation_on("graph_launch", *stream)
      .number("of", capture.id)
      .number("origin", capture.origin_stream)
      .write();
  return cudaSuccess;
}

}  // namespace

Stream* find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream();
  if (handle == cudaStreamPerThread) return per_thread_stream();
  const auto found = streams.find(handle);
  return found == streams.end() || !found->second->alive ? nullptr : found->second.get();
}

cudaStream_t given_stream() {
  static Stream* stream = [] {
    auto made = std::make_unique<Stream>();
    Stream* pointer = made.get();
    streams[pointer] = std::move(made);
    return pointer;
  }();
  return reinterpret_cast<cudaStream_t>(stream);
}

cudaError_t ready_for_work(cudaStream_t handle, const char* what, Stream** out) {
  Stream* stream = find_stream(handle);
  if (stream == nullptr)
    return fail(cudaErrorInvalidResourceHandle, std::string(what) + " on a stream that does not exist");
  if (stream->legacy) {
    if (Capture* capture = open_capture(true)) {
      capture->invalid = true;
      return fail(cudaErrorStreamCaptureImplicit,
                  std::string(what) + " on the default stream while a stream is captured");
    }
  }
  if (stream->capture != nullptr && stream->capture->invalid)
    return fail(cudaErrorStreamCaptureInvalidated, std::string(what) + " in a capture that has failed");
  *out = stream;
  return cudaSuccess;
}

cudaError_t ready_for_host_call(const char* what) {
  Capture* capture = open_capture(false);
  if (capture == nullptr) return cudaSuccess;
  capture->invalid = true;
  return fail(cudaErrorStreamCaptureUnsupported, std::string(what) + " while a stream is captured");
}

Line operation_on(const char* name, const Stream& stream) {
  count_operation();
  Line line(name);
  line.number("stream", stream.id);
  if (stream.capture != nullptr) line.number("graph", stream.capture->id);
  return line;
}

}  // namespace recorder

using namespace recorder;

// ---- streams

static cudaError_t new_stream(cudaStream_t* out, unsigned flags) {
  *out = reinterpret_cast<cudaStream_t>(create_stream((flags & cudaStreamNonBlocking) == 0));
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamCreate(cudaStream_t* out) { return new_stream(out, 0); }

RECORDER_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return new_stream(out, flags);
}

RECORDER_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  if (priority != 0) note("stream priorities have no effect on the plan");
  return new_stream(out, flags);
}

RECORDER_API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Stream* stream = find_stream(handle);
  if (stream == nullptr || stream->legacy || handle == given_stream()) return bad_handle("cudaStreamDestroy");
  stream->alive = false;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Stream* stream = find_stream(handle);
  if (stream == nullptr) return bad_handle("cudaStreamSynchronize");
  if (const cudaError_t code = ready_for_host_call("cudaStreamSynchronize")) return code;
  synchronize("stream", stream->id, 0);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamQuery(cudaStream_t handle) {
  if (find_stream(handle) == nullptr) return bad_handle("cudaStreamQuery");
  if (const cudaError_t code = ready_for_host_call("cudaStreamQuery")) return code;
  note("cudaStreamQuery was answered as finished");
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  const Stream* stream = find_stream(handle);
  if (stream == nullptr) return bad_handle("cudaStreamGetFlags");
  *flags = stream->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  if (find_stream(handle) == nullptr) return bad_handle("cudaStreamGetPriority");
  *priority = 0;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaLaunchAttributeID,
                                                const cudaLaunchAttributeValue*) {
  note("stream attributes, such as the L2 access policy, have no effect on the plan");
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamGetAttribute(cudaStream_t, cudaLaunchAttributeID,
                                                cudaLaunchAttributeValue* value) {
  std::memset(value, 0, sizeof *value);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t code = ready_for_host_call("cudaDeviceSynchronize")) return code;
  synchronize("device", 0, 0);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }

RECORDER_API cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t, void*) {
  refuse("the launcher calls cudaLaunchHostFunc: host code that runs between operations", Direct::possible);
}

RECORDER_API cudaError_t cudaStreamAddCallback(cudaStream_t, cudaStreamCallback_t, void*, unsigned) {
  refuse("the launcher calls cudaStreamAddCallback: host code that runs between operations", Direct::possible);
}

// ---- events

RECORDER_API cudaError_t cudaEventCreate(cudaEvent_t* out) { return make_event(out); }
RECORDER_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) { return make_event(out); }

RECORDER_API cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return events.erase(handle) == 1 ? cudaSuccess : bad_handle("cudaEventDestroy");
}

RECORDER_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record_event(event, stream);
}

RECORDER_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return record_event(event, stream);
}

RECORDER_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return wait_event(stream, event);
}

RECORDER_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const Event* event = find_event(handle);
  if (event == nullptr) return bad_handle("cudaEventSynchronize");
  if (const cudaError_t code = ready_for_host_call("cudaEventSynchronize")) return code;
  if (event->recorded) synchronize("event", 0, event->id);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  if (find_event(handle) == nullptr) return bad_handle("cudaEventQuery");
  if (const cudaError_t code = ready_for_host_call("cudaEventQuery")) return code;
  note("cudaEventQuery was answered as finished");
  return cudaSuccess;
}

#undef cudaEventElapsedTime
RECORDER_API cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) {
  refuse("the launcher calls cudaEventElapsedTime: a time could steer its launches", Direct::possible);
}

RECORDER_API cudaError_t cudaEventElapsedTime_v2(float*, cudaEvent_t, cudaEvent_t) {
  refuse("the launcher calls cudaEventElapsedTime: a time could steer its launches", Direct::possible);
}

// ---- graphs, made by stream capture only

RECORDER_API cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  Stream* stream = find_stream(handle);
  if (stream == nullptr) return bad_handle("cudaStreamBeginCapture");
  if (stream->legacy) return fail(cudaErrorStreamCaptureUnsupported, "cudaStreamBeginCapture on the default stream");
  if (stream->capture != nullptr) return fail(cudaErrorIllegalState, "cudaStreamBeginCapture in a capture");
  auto made = std::make_unique<Capture>();
  made->id = next_graph++;
  made->origin = stream;
  made->origin_stream = stream->id;
  stream->capture = made.get();
  captures[made.get()] = std::move(made);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  return end_capture(stream, out);
}

RECORDER_API cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Stream* stream = find_stream(handle);
  if (stream == nullptr) return bad_handle("cudaStreamIsCapturing");
  if (stream->capture == nullptr)
    *status = cudaStreamCaptureStatusNone;
  else
    *status = stream->capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

static cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t graph) {
  if (captures.count(graph) == 0) return bad_handle("cudaGraphInstantiate");
  *out = reinterpret_cast<cudaGraphExec_t>(graph);
  return cudaSuccess;
}

RECORDER_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  return instantiate(out, graph);
}

RECORDER_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                                       unsigned long long) {
  return instantiate(out, graph);
}

RECORDER_API cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return launch_graph(executable, stream);
}

RECORDER_API cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
RECORDER_API cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
RECORDER_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
