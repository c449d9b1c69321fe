// Changing the number of copies of a log: what is written into its conf keys, in an order in which everybody
// can go on after any step. eventlog.hpp has the protocol.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/context.hpp"
#include "common/primitives/several/recopying.hpp"
#include "common/structures/eventlog/conf.hpp"

namespace mcds {

class LogRecopy {
 public:
  LogRecopy(const Context& context, std::string_view name) : context_(context), name_(name) {}

  // Step 1: the log leaves `from` for the context's number of copies. False: it had left before. Throws, and
  // has changed nothing, if a server that has a copy of either conf key does not answer.
  bool leave(const LogNumber& from) const;
  // The other steps, as far as they are not done, for who left `from` last. Throws if the new conf key cannot
  // be written:
  // with `everywhere` in every copy, otherwise in any.
  void complete(const LogNumber& from, bool everywhere) const;
  // Ends the log: its conf keys, so that who starts a chunk looks for the mark and waits; then every part
  // that a directory names, and the directories. False: there was none. What no directory names ends with its
  // ring.
  bool drop() const;
  // Does that, by a change that has begun or was left by a client that died.
  void end(Recopying& recopying) const;
  // Throws if a server that may have a conf key of the log does not answer.
  void expect_answers() const;

 private:
  std::vector<InUse> read(const LogNumber& number, bool everywhere) const;
  std::vector<InUse> taken_over(std::span<const InUse> conf, const LogMove& move) const;
  bool write(const LogNumber& number, std::span<const InUse> lines, bool everywhere) const;
  void close(const LogNumber& number, std::span<const InUse> conf) const;
  std::vector<LogNumber> numbers() const;
  std::string rings_in_use() const;
  void remove_ring(Recopying& recopying, const LogNumber& number, const RingShape& shape) const;
  bool remove_directory(const Context& copy, const LogKeys& keys, std::int64_t group) const;
  void close_chunk(const Context& copy, const LogKeys& keys, std::int64_t chunk) const;
  std::string conf_key(const LogNumber& number) const { return number.key(context_, name_) + ":conf"; }

  Context context_;
  std::string name_;
};

}  // namespace mcds
