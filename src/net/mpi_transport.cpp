#include "grosr/net/mpi.hpp"

#include "grosr/simt/error.hpp"
#include "grosr/simt/process.hpp"

#if defined(GROSR_HAS_MPI)

#define OMPI_SKIP_MPICXX 1  // the C interface alone
#define MPICH_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace grosr::net {
namespace {

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return std::string(text, static_cast<std::size_t>(length));
}

/// How many processes, by number: "process 2", "processes 1, 3".
std::string listed(const std::vector<std::uint32_t>& processes) {
  return fmt::format("{} {}", processes.size() == 1 ? "process" : "processes",
                     fmt::join(processes, ", "));
}

class mpi_connection : public connection {
 public:
  mpi_connection(MPI_Comm all, std::uint32_t process, std::uint32_t processes, int tag)
      : all_(all),
        process_(process),
        tag_(tag),
        out_(processes),
        in_(processes),
        sends_(processes, MPI_REQUEST_NULL),
        receives_(processes, MPI_REQUEST_NULL) {
    for (std::uint32_t p = 0; p < processes; ++p) {
      if (p == process_) continue;
      out_[p].reset(new std::byte[most_packet]);
      in_[p].reset(new std::byte[most_packet]);
    }
    for (std::uint32_t p = 0; p < processes; ++p)
      if (p != process_) listen(p);
  }
  ~mpi_connection() override {
    int over = 0;
    MPI_Finalized(&over);
    for (std::size_t p = 0; p < out_.size() && over == 0; ++p) {
      if (receives_[p] != MPI_REQUEST_NULL) MPI_Cancel(&receives_[p]);
      abandon(receives_[p], in_[p]);
      abandon(sends_[p], out_[p]);
    }
  }

  std::byte* to_fill(std::uint32_t process) override {
    check();
    int done = 0;
    must(MPI_Test(&sends_[process], &done, MPI_STATUS_IGNORE), "send to", process);
    return done != 0 ? out_[process].get() : nullptr;
  }
  void send(std::uint32_t process, std::size_t bytes) override {
    must(MPI_Isend(out_[process].get(), static_cast<int>(bytes), MPI_BYTE,
                   static_cast<int>(process), tag_, all_, &sends_[process]),
         "send to", process);
  }
  packet receive() override {
    check();
    if (came_ != none) listen(std::exchange(came_, none));
    int index = MPI_UNDEFINED, done = 0, bytes = 0;
    MPI_Status status;
    status.MPI_ERROR = MPI_SUCCESS;
    const int code =
        MPI_Testany(static_cast<int>(receives_.size()), receives_.data(), &index, &done, &status);
    if (code != MPI_SUCCESS)
      must(code, "receive from", index == MPI_UNDEFINED ? none : static_cast<std::uint32_t>(index));
    if (done == 0 || index == MPI_UNDEFINED) return {0, {}};
    came_ = static_cast<std::uint32_t>(index);
    must(MPI_Get_count(&status, MPI_BYTE, &bytes), "receive from", came_);
    return {came_, {in_[came_].get(), static_cast<std::size_t>(bytes)}};
  }

  std::vector<std::string> gather(const std::string& mine, run::deadline until) override {
    check();
    const std::size_t n = out_.size();
    std::vector<std::string> all(n);
    all[process_] = mine;
    // What is sent stays where it is until all have it, also where that is never.
    std::vector<MPI_Request> sends(n, MPI_REQUEST_NULL);
    std::unique_ptr<std::string> sent(new std::string(mine));
    std::vector<std::uint32_t> missing;
    for (std::uint32_t p = 0; p < n; ++p)
      if (p != process_) missing.push_back(p);
    try {
      for (const std::uint32_t p : missing)
        must(MPI_Isend(sent->data(), static_cast<int>(sent->size()), MPI_BYTE, static_cast<int>(p),
                       tag_ + 1, all_, &sends[p]),
             "send to", p);
      nap pause;
      for (;;) {
        check();
        const std::size_t before = missing.size();
        std::erase_if(missing, [&](std::uint32_t p) { return came(p, all[p]); });
        bool went = true;
        for (std::uint32_t p = 0; p < n; ++p) {
          int done = 0;
          must(MPI_Test(&sends[p], &done, MPI_STATUS_IGNORE), "send to", p);
          went = went && done != 0;
        }
        if (missing.empty() && went) break;
        if (missing.size() != before) {
          pause.reset();
        } else {
          if (until && std::chrono::steady_clock::now() >= *until)
            throw error(errc::timed_out,
                        fmt::format("world: process {} waited for {}, which did not come in time; "
                                    "see what {} there",
                                    process_, missing.empty() ? "others" : listed(missing),
                                    missing.size() == 1 ? "it does" : "they do"));
          pause.take();
        }
      }
    } catch (const std::exception& e) {
      give_up(e.what());
      bool left = false;
      for (MPI_Request& r : sends)
        if (r != MPI_REQUEST_NULL) left = MPI_Request_free(&r) == MPI_SUCCESS || left;
      if (left) simt::leave(sent.release());
      throw;
    }
    return all;
  }

  void give_up(const std::string& why) noexcept override {
    const std::lock_guard hold(lock_);
    if (why_.empty()) why_ = why;
  }
  void check() const override {
    const std::lock_guard hold(lock_);
    if (!why_.empty()) throw error(errc::stopped, why_);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  void must(int code, const char* what, std::uint32_t process) {
    if (code == MPI_SUCCESS) return;
    give_up(fmt::format("world: process {} cannot {} {}: MPI says: {}", process_, what,
                        process == none ? "another process" : fmt::format("process {}", process),
                        text_of(code)));
    check();
  }
  void listen(std::uint32_t process) {
    must(MPI_Irecv(in_[process].get(), most_packet, MPI_BYTE, static_cast<int>(process), tag_, all_,
                   &receives_[process]),
         "receive from", process);
  }
  bool came(std::uint32_t process, std::string& what) {
    int there = 0, bytes = 0;
    MPI_Message message;
    MPI_Status status;
    must(MPI_Improbe(static_cast<int>(process), tag_ + 1, all_, &there, &message, &status),
         "receive from", process);
    if (there == 0) return false;
    must(MPI_Get_count(&status, MPI_BYTE, &bytes), "receive from", process);
    what.resize(static_cast<std::size_t>(bytes));
    must(MPI_Mrecv(what.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "receive from",
         process);
    return true;
  }
  /// Of a request that does not end, the bytes stay.
  static void abandon(MPI_Request& request, std::unique_ptr<std::byte[]>& bytes) {
    int done = 1;
    if (request == MPI_REQUEST_NULL) return;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0) return;
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    simt::leave(bytes.release());
  }

  MPI_Comm all_;
  std::uint32_t process_, came_ = none;
  int tag_;
  std::vector<std::unique_ptr<std::byte[]>> out_, in_;
  std::vector<MPI_Request> sends_, receives_;
  mutable std::mutex lock_;
  std::string why_;
};

class mpi_transport : public transport {
 public:
  mpi_transport() {
    int begun = 0, over = 0, level = MPI_THREAD_SINGLE;
    MPI_Finalized(&over);
    if (over != 0)
      throw error(errc::misuse,
                  "net::mpi() was called after MPI_Finalize; call it before the program ends MPI");
    MPI_Initialized(&begun);
    if (begun != 0) {
      MPI_Query_thread(&level);
    } else {
      begins_ = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS;
      if (!begins_)
        throw error(errc::stopped,
                    "net::mpi(): MPI_Init_thread failed; start the program by mpirun");
    }
    if (level < MPI_THREAD_MULTIPLE)
      throw error(
          errc::misuse,
          fmt::format("net::mpi() needs MPI_THREAD_MULTIPLE, and MPI gives thread level {}; "
                      "call MPI_Init_thread with MPI_THREAD_MULTIPLE, or leave it to "
                      "net::mpi(), with an MPI that was built for threads",
                      level));
    int process = 0, processes = 1;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &all_) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(all_, &process) != MPI_SUCCESS ||
        MPI_Comm_size(all_, &processes) != MPI_SUCCESS)
      throw error(errc::stopped, "net::mpi(): MPI gives no communicator of its own");
    process_ = static_cast<std::uint32_t>(process);
    processes_ = static_cast<std::uint32_t>(processes);
  }
  ~mpi_transport() override {
    int over = 0;
    MPI_Finalized(&over);
    if (over != 0 || simt::this_process() != made_in_) return;
    MPI_Comm_free(&all_);
    if (begins_) MPI_Finalize();
  }

  std::uint32_t process() const override { return process_; }
  std::uint32_t processes() const override { return processes_; }
  simt::owner<connection> connect() override {
    const std::lock_guard hold(lock_);
    constexpr int most_tags = 32'766;  // MPI has tags to 32,767 at least
    const int tag = next_tag_;
    next_tag_ = (next_tag_ + 2) % most_tags;
    return simt::owner<connection>(new mpi_connection(all_, process_, processes_, tag));
  }

 private:
  MPI_Comm all_ = MPI_COMM_NULL;
  std::uint32_t process_ = 0, processes_ = 1;
  bool begins_ = false;
  long made_in_ = simt::this_process();
  std::mutex lock_;
  int next_tag_ = 0;
};

}  // namespace

transport& mpi() {
  static mpi_transport only;
  return only;
}

}  // namespace grosr::net

#else

namespace grosr::net {

transport& mpi() {
  throw error(errc::not_built,
              "net::mpi() was called, and this was built where MPI was not found, or with "
              "GROSR_MPI=OFF; install libopenmpi-dev and build it again");
}

}  // namespace grosr::net

#endif
