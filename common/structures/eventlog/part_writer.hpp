// Appends lines to a chunk of an event log: to its last part, or to one that it creates. eventlog.hpp has the
// layout and the promises.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/primitives/context.hpp"
#include "common/primitives/in_use.hpp"
#include "common/structures/eventlog/conf.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds {

class PartWriter {
 public:
  // The largest append: batches stay below it.
  static constexpr std::size_t batch_size = std::size_t{256} << 10;

  // `context` must outlive it; it writes one of the keys' copies. With several, a part is created although
  // the directory's server cannot be reached; otherwise it must be named to be missed. `guessed`: so is the
  // shape, until append() has stored something, or settle() is called.
  PartWriter(Context& context, const RingShape& shape, const LogKeys& keys, bool guessed)
      : context_(&context), shape_(shape), keys_(keys), guessed_(guessed) {}

  struct Appended {
    // False, without the other two: there is not even a directory, or no conf key, and nobody has looked for
    // the log elsewhere, see may_begin.
    bool done = true;
    std::optional<RingShape> meant = {};  // nothing of a guessed shape is there, and this is a newer one
    // The log is kept in another number of copies by now. Unless perhaps(), nothing was stored.
    std::optional<LogMove> left = {};
  };
  // Whole event lines, at most batch_size. Throws NotApplied, UnknownOutcome, Contention.
  Appended append(std::int64_t chunk, const std::string& lines);
  // From now on directories are created.
  void may_begin() { may_begin_ = true; }
  void settle() { guessed_ = false; }
  // Another copy has the present lines: this one follows, where readers still read.
  void follow() { perhaps_ = true; }
  // Appends any number of lines that another copy has: they are stored although the directory has no room for
  // their part.
  void restore(std::int64_t chunk, std::string_view lines);
  // The lines that come next are others.
  void begin_lines() {
    perhaps_ = false;
    stored_ = 0;
  }
  // How many of the present ones are certainly stored, the first of them: a server whose items are small
  // takes them in pieces.
  std::size_t stored() const { return stored_; }
  // Some of the present ones may be stored, or get stored, whatever append() has answered.
  bool perhaps() const { return perhaps_; }
  // Whether it has begun a chunk since the last call.
  bool take_begun() { return std::exchange(begun_, false); }
  // Lists that part, so that its absence is reported from now on. False: another client changed the conf key,
  // which may say anything now that concerns this shape. Throws NotApplied.
  bool name_part(const PartName& name, const std::string& incarnation);
  // Withdraws that part. Best effort: otherwise a reader reports a gap although nothing was lost.
  void withdraw(const PartName& name, const std::string& incarnation);

 private:
  enum class Stored { yes, refused, again };
  enum class Look { stored, full, missing, again, nowhere, elsewhere };

  Appended append_piece(std::int64_t chunk, const std::string& lines);
  Stored append_to(const PartName& name, const std::string& lines);
  Look look(const PartName& name, const std::string& lines, std::int64_t& last_part, Appended& appended);
  Stored create(const PartName& name, const std::string& lines);
  std::optional<std::string> read_back(const PartName& name);
  Exptime exptime_of(std::int64_t chunk) const {
    return Exptime::at(shape_.expiry_of(chunk), context_->clock.wall());
  }
  InUse in_use(std::int64_t chunk) const { return {shape_.text(), shape_.expiry_of(chunk)}; }
  std::optional<RingShape> meant() const;
  std::optional<LogMove> left(std::int64_t chunk) const;

  Context* context_;
  RingShape shape_;
  LogKeys keys_;
  bool guessed_;
  std::size_t stored_ = 0;
  bool perhaps_ = false;  // some of the present lines may be stored already: the rest follows them
  bool touches_ = true;   // as far as is known, all servers know touch
  bool may_begin_ = false;
  bool restores_ = false;
  bool begun_ = false;
  std::optional<Reply> conf_;                   // as the last look found it
  std::optional<PartName> missing_;             // certainly, when may_begin was asked for
  std::map<std::int64_t, std::int64_t> parts_;  // chunk → the part last appended to
};

}  // namespace mcds
