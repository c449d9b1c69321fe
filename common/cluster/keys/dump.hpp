// Dump: lists the keys of one server, over a separate connection.
//
// Before 1.6.19 memcached holds locks while it writes a dump to its client. If another dump runs or the hash
// table grows meanwhile, the whole server can hang. The server's statistics are therefore read first. Below
// 1.6.19 a dump starts only if no other is running and the table is neither growing nor about to grow. A busy
// server is queried again, soon and then every second, for LiveKeysOptions::patience.
#pragma once

#include "common/cluster/keys/live.hpp"

namespace mcds {

// The state of a server before its dump, as its `stats` report it.
struct DumpState {
  std::uint32_t release = 0;  // 10618 for 1.6.18; 0 if not reported, or in another form
  std::uint64_t items = 0;
  std::uint64_t max_keys = 0;  // a longer list is treated as endless
  std::uint64_t table = 0;     // slots of the hash table
  bool crawling = false, growing = false;

  static DumpState of(std::string_view statistics);
  // Returns why a dump must not start now, or an empty string. `before` is the state one second earlier.
  std::string_view objection(const std::optional<DumpState>& before) const;
};

class Dump final : public LineStream {
 public:
  enum class Phase { looking, dumping, counting };
  // Returns the current DumpState::max_keys of the server with this index.
  using CountAgain = std::function<std::uint64_t(std::size_t index)>;

  // If `first` is counting, no keys are listed; only the server's statistics are read.
  Dump(const Server& server, std::size_t index, const LiveKeysOptions& options, const tls::Context* tls,
       const TakeLiveKey& take, CountAgain count_again, Phase first = Phase::looking)
      : LineStream(server, options, tls),
        index_(index),
        take_(take),
        count_again_(std::move(count_again)),
        patience_(options.patience),
        phase_(first) {}

  void time_is_up() override { fail(Kind::unknown, "not all keys were listed in time; raise --timeout"); }
  LiveKeysOfServer result() const;
  std::uint64_t max_keys() const { return state_.max_keys; }

 private:
  void ask(SteadyTime now) override { look(now, phase_); }
  void act(SteadyTime now) override;
  void received(SteadyTime now) override;
  void take_line(std::string_view line, SteadyTime now) override;
  void take_close() override;
  void take_late() override;

  void look(SteadyTime now, Phase phase);
  void take_statistic(std::string_view line, SteadyTime now);
  void looked(SteadyTime now);
  void ask_for_keys(SteadyTime now);
  void take_key_line(std::string_view line, SteadyTime now);
  bool has_grown();
  void take_end(SteadyTime now);
  void await_end(SteadyTime now);
  void wait(SteadyTime now, std::string_view why);
  void refuse(std::string_view line);
  // Returns true for 1.4.31 to 1.4.39, which do not send END.
  bool may_lack_end() const { return state_.release < 10440; }

  std::size_t index_;
  const TakeLiveKey& take_;
  CountAgain count_again_;
  Duration patience_;
  Phase phase_;
  std::string statistics_;
  DumpState state_;
  std::optional<DumpState> before_;
  std::string_view command_;
  SteadyTime asked_at_{};
  std::optional<SteadyTime> busy_until_;
  Duration pause_ = std::chrono::milliseconds(30);  // before the next attempt
  bool retries_ = false;
  int refused_ends_ = 0;               // replies to end_question that do not end a dump
  std::optional<SteadyTime> ends_at_;  // when to send end_question; unset once it was sent
  std::string buffer_;
  LiveKeysOfServer result_;
};

}  // namespace mcds
