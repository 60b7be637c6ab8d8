#include "ranks/options.hpp"

#include "cli/pick_device.hpp"

namespace grosr::ranks {

void options::add_device(CLI::App& program) {
  program.add_option("--device", device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
}

void options::add_ranks(CLI::App& program) {
  program.add_option("--ranks", ranks_, "How many, 1 to 64; 8 on GPUs, else 4")->type_name("N");
  program.add_option("--sms", sms_, "Multiprocessors of each rank; 128 divided by ranks on GPUs")
      ->type_name("N");
  program.add_option("--blocks", blocks_, "Thread blocks on each of them; as many as fit, but one")
      ->type_name("N");
}

void options::add_link(CLI::App& program) {
  program
      .add_option("--link", link_,
                  "Bytes of a link, a power of two, 8K to 1M; by default 64K, more for large ranks")
      ->type_name("BYTES");
}

placement options::read(std::uint32_t ranks) const {
  placement p;
  p.where = tool::pick_device(device);
  const bool gpu = p.where.is_cuda();
  if (ranks == 0) ranks = gpu ? 8 : 4;
  p.ranks = number_or<std::uint32_t>("--ranks", ranks_, ranks, 1, 64);
  p.sms = number_or<unsigned>("--sms", sms_, gpu ? 128 / p.ranks : 1, 1, 1024);
  p.blocks_per_sm = number_or<unsigned>("--blocks", blocks_, 0, 1, 16);
  if (link_)
    p.link_bytes = static_cast<std::uint32_t>(tool::parse_bytes("--link", *link_, 8192, 1 << 20));
  return p;
}

}  // namespace grosr::ranks
