// What tasks do with a window of a file: they search its lines, and report those that match.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "grosr/sys/server.hpp"
#include "warp/sums.hpp"
#include "windows.hpp"

namespace grosr::grep {

struct search_files {
  tool::reading io;
  line_automaton_ref lines;
  bool wants_lines, wants_numbers;
  file_state* state;
  record* records;
  char* texts;
  std::uint64_t record_room, text_room;
  struct usage {
    std::uint64_t records, text;
  } * used;

  GROSR_DEVICE static std::uint64_t offset_of(std::uint32_t window) {
    return window == 0 ? 0 : std::uint64_t{window} * stride - 1;
  }
  GROSR_DEVICE static std::uint64_t windows_in(std::uint64_t bytes) { return bytes / stride + 1; }

  GROSR_DEVICE void take(std::uint32_t file, std::uint32_t window, const unsigned char* text,
                         std::uint32_t bytes) const {
    search(file, window, offset_of(window), text, bytes);
  }

  GROSR_DEVICE void failed(std::uint32_t file, long bad) const {
    word(state[file].error).store(static_cast<std::uint32_t>(-bad), simt::relaxed);
  }

 private:
  GROSR_DEVICE static simt::atomic_ref<std::uint32_t> word(std::uint32_t& w) {
    return simt::atomic_ref<std::uint32_t>(w);
  }

  GROSR_DEVICE void search(std::uint32_t file, std::uint32_t number, std::uint64_t at,
                           const unsigned char* text, std::uint32_t bytes) const {
    simt::sync_warp();
    const unsigned lane = simt::lane_id();
    const std::uint32_t own = number == 0 ? 0 : 1;
    const std::uint32_t own_end = bytes < own + stride ? bytes : own + stride;
    const std::uint32_t each = own_end <= own ? 0 : (own_end - own + 31) / 32;
    window_part part{
        text, bytes, own + lane * each, own + (lane + 1) * each, number == 0, bytes < window_bytes};
    if (part.own_end > own_end) part.own_end = own_end;
    part_result r;
    r.zero = each_line(part, lines, [&](std::uint32_t, std::uint32_t b, std::uint32_t e, bool hit) {
      ++r.lines;
      if (e == record::too_long) {
        ++r.reported;
      } else if (hit) {
        ++r.matches;
        r.bytes += e - b;
      }
    });
    if (wants_lines) r.reported += r.matches;
    simt::sync_warp();
    const std::uint32_t zero = simt::ballot(simt::full_mask, r.zero);
    const std::uint32_t busy = simt::ballot(simt::full_mask, r.matches != 0 || r.reported != 0);
    const bool counts_lines = wants_numbers && (number != 0 || bytes == window_bytes);
    if (lane == 0 && zero != 0) word(state[file].flags).fetch_or(file_state::binary, simt::relaxed);
    if (busy != 0 || counts_lines) report(file, number, at, part, r, counts_lines);
    simt::sync_warp();
  }

  /// The sum of lanes below, and of all.
  GROSR_DEVICE static std::uint32_t sum_below(std::uint32_t mine, std::uint32_t& all) {
    const std::uint32_t sum = warp::sum_up_to_lane(mine);
    all = warp::of_last_lane(sum);
    return sum - mine;
  }

  GROSR_DEVICE static simt::atomic_ref<std::uint64_t> wide(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }

  GROSR_DEVICE GROSR_NOINLINE void report(std::uint32_t file, std::uint32_t number,
                                          std::uint64_t at, const window_part& part,
                                          const part_result& r, bool counts_lines) const {
    std::uint32_t all_lines, all_matches, all_reported, all_bytes;
    const std::uint32_t first_line = sum_below(r.lines, all_lines);
    sum_below(r.matches, all_matches);
    const std::uint32_t first_record = sum_below(r.reported, all_reported);
    std::uint32_t first_byte = sum_below(wants_lines ? r.bytes : 0, all_bytes);
    const std::uint32_t wanted = all_reported + (counts_lines ? 1 : 0);
    std::uint64_t record_at = 0, text_at = record::no_text;
    if (simt::lane_id() == 0) {
      if (all_matches != 0) wide(state[file].matches).fetch_add(all_matches, simt::relaxed);
      if (wanted != 0) record_at = wide(used->records).fetch_add(wanted, simt::relaxed);
      if (all_bytes != 0) {
        text_at = wide(used->text).fetch_add(all_bytes, simt::relaxed);
        if (text_at + all_bytes > text_room) text_at = record::no_text;
      }
      if (record_at + wanted > record_room)
        word(state[file].flags).fetch_or(file_state::again, simt::relaxed);
    }
    simt::sync_warp();
    record_at = simt::shuffle(simt::full_mask, record_at, 0);
    text_at = simt::shuffle(simt::full_mask, text_at, 0);
    if (wanted == 0) return;
    if (record_at + wanted > record_room) {
      for (std::uint64_t i = record_at + simt::lane_id(); i < record_room; i += simt::warp_size)
        records[i] = {record::no_file, 0, 0, 0, 0, 0};
      return;
    }
    if (simt::lane_id() == 0 && counts_lines)
      records[record_at + all_reported] = {file, number, all_lines, record::line_count, at, 0};
    if (r.reported == 0) return;
    record* to = records + record_at + first_record;
    each_line(part, lines, [&](std::uint32_t line, std::uint32_t b, std::uint32_t e, bool hit) {
      if (e == record::too_long) {
        *to++ = {file, number, first_line + line, record::too_long, at + b, record::no_text};
      } else if (hit && wants_lines) {
        const std::uint64_t text = text_at == record::no_text ? text_at : text_at + first_byte;
        *to++ = {file, number, first_line + line, e - b, at + b, text};
        if (text != record::no_text)
          for (std::uint32_t i = b; i < e; ++i)
            texts[text + i - b] = static_cast<char>(part.text[i]);
        first_byte += e - b;
      }
    });
  }
};

}  // namespace grosr::grep
