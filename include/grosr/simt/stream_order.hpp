// Streams and events of a program, with which work of GROSR is ordered.
#pragma once

#include <cstdint>

#include "grosr/simt/launch.hpp"

struct CUstream_st;  // a cudaStream_t points to it,
struct CUevent_st;   // a cudaEvent_t to this

namespace grosr::simt {

/// A stream of either kind: a simt::stream, or a cudaStream_t. Refers to the stream, which must
/// live.
class any_stream {
 public:
  any_stream(stream& s) : own_(&s) {}
  any_stream(CUstream_st* s) : cuda_(s) {}

  stream* own() const { return own_; }  ///< null: it is CUDA's
  CUstream_st* native() const {  ///< null of a stream of the host, and of the legacy default stream
    return own_ ? static_cast<CUstream_st*>(own_->native()) : cuda_;
  }

 private:
  stream* own_ = nullptr;
  CUstream_st* cuda_ = nullptr;
};

/// When all that a stream holds at the call is done; or when an event, as it is recorded at the
/// call, has happened.
class moment {
 public:
  moment(any_stream s) : stream_(s) {}
  moment(stream& s) : stream_(s) {}
  moment(CUstream_st* s) : stream_(s) {}
  moment(CUevent_st* e) : stream_(static_cast<CUstream_st*>(nullptr)), is_event_(true), event_(e) {}

  any_stream in() const { return stream_; }
  bool is_event() const { return is_event_; }
  CUevent_st* event() const { return event_; }

 private:
  any_stream stream_;
  bool is_event_ = false;
  CUevent_st* event_ = nullptr;
};

/// Throws error(misuse or invalid_option), whose text begins with `asked`, unless work of the
/// device can be ordered with the stream or event: it is of that device, and is not being captured.
void check_order(const device& d, const any_stream& s, const std::string& asked);
void check_order(const device& d, const moment& when, const std::string& asked);

/// Waits until the moment has come. A stream, or event, of CUDA is one of `d`. Throws
/// error(misuse) where that is no GPU; as stream::wait().
void wait_for(const device& d, const moment& when);

class stream_order_backend;

/// Has streams of a GPU store words of pinned memory, and wait for them. No thread waits.
/// Thread-safe. Throws error(device_lost), and error(not_built) where the driver cannot.
class stream_order {
 public:
  explicit stream_order(device d);
  ~stream_order();

  /// Has `value` stored in `word` when the moment has come. Whoever sees it sees what came before.
  /// False if it is an event that has happened already: then nothing is stored.
  bool store_at(const moment& when, std::uint32_t* word, std::uint32_t value);

  /// What is put into the stream later begins when `word` has come to `value`, or beyond: both
  /// wrap.
  void wait_for(const any_stream& s, const std::uint32_t* word, std::uint32_t value);

 private:
  owner<stream_order_backend, not_in_a_fork> backend_;
};

}  // namespace grosr::simt
