// PartWriter appends lines to a chunk of an event log: to its last part, or to one that it creates.
// eventlog.hpp has the layout and the guarantees.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/primitives/active_variants.hpp"
#include "common/structures/eventlog/directory.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds {

class PartWriter {
 public:
  // The maximum size of one append; batches stay below it.
  static constexpr std::size_t batch_size = std::size_t{256} << 10;

  // If `guessed` is set, the shape is a guess until append() has stored something.
  PartWriter(LogRing ring, bool guessed) : ring_(std::move(ring)), guessed_(guessed) {}

  const LogRing& ring() const { return ring_; }
  // Appends whole event lines, at most batch_size. If nothing of a guessed shape exists and another one is in
  // use, stores nothing and returns the newest one in use. Throws NotApplied, UnknownOutcome, Contention.
  std::optional<RingShape> append(std::int64_t chunk, const std::string& lines);
  // Returns how many of the last append's lines, from the first, are certainly stored: a server with small
  // items gets them in pieces.
  std::size_t stored() const { return stored_; }

 private:
  enum class Stored { yes, refused, again, meant };
  enum class Look { stored, full, missing, nothing, again, elsewhere };

  Stored append_piece(std::int64_t chunk, const std::string& lines);
  Stored append_to(const PartName& name, const std::string& lines);
  Look look(const PartName& name, const std::string& lines, std::int64_t& last_part);
  Stored create(const PartName& name, const std::string& lines);
  bool name_part(const PartName& name, const std::string& incarnation);
  void withdraw(const PartName& name, const std::string& incarnation);
  std::optional<std::string> read_back(const PartName& name);
  Exptime exptime_of(std::int64_t chunk) const {
    return Exptime::at(ring_.shape.expiry_of(chunk), ring_.context.clock.wall());
  }
  ActiveVariant in_use(std::int64_t chunk) const {
    return {ring_.shape.text(), ring_.shape.expiry_of(chunk)};
  }
  bool knows_us(const Reply& conf) const;
  std::optional<RingShape> meant() const;

  LogRing ring_;
  bool guessed_;
  std::size_t stored_ = 0;
  bool perhaps_ = false;  // some of the current lines may be stored, so the rest must follow them
  bool touches_ = true;   // false once a server did not support touch
  Reply conf_;            // as look() found it last
  bool directory_missing_ = false;
  std::map<std::int64_t, std::int64_t> parts_;  // chunk → the part last appended to
};

}  // namespace mcds
