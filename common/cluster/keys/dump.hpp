// One server's dump of its keys, over a connection of its own.
//
// Below 1.6.19 memcached holds locks while it writes a dump to its client, and a dump that meets a second
// one, or the growth of the hash table, can stop the whole server. So the server is first asked for its
// statistics: below 1.6.19 a dump starts only while no other is running and the table neither grows nor is
// about to. A server that is busy is asked again every second, for LiveKeysOptions::patience.
#pragma once

#include "common/cluster/keys/live.hpp"

namespace mcds {

// What `stats` says about a server that is to dump its keys.
struct DumpState {
  std::uint32_t release = 0;  // 10618 for 1.6.18; 0: not reported, or in another form
  std::uint64_t items = 0;
  std::uint64_t most_keys = 0;  // that a list of it may have before it is taken for one without end
  std::uint64_t table = 0;      // places in the hash table
  bool crawling = false, growing = false;

  static DumpState of(std::string_view statistics);
  // Why a dump must not start now; empty: it may. `before`: the state a second earlier.
  std::string_view objection(const std::optional<DumpState>& before) const;
};

class Dump final : public LineStream {
 public:
  enum class Phase { looking, dumping, counting };
  // DumpState::most_keys of the server with this index, as of now.
  using CountAgain = std::function<std::uint64_t(std::size_t index)>;

  // `first`: counting does not list keys, it only looks at the server.
  Dump(const Server& server, std::size_t index, const LiveKeysOptions& options, const tls::Context* tls,
       const TakeLiveKey& take, CountAgain count_again, Phase first = Phase::looking)
      : LineStream(server, options, tls),
        index_(index),
        take_(take),
        count_again_(std::move(count_again)),
        patience_(options.patience),
        phase_(first) {}

  void time_is_up() override { fail(Kind::unknown, "not all keys were listed in time"); }
  LiveKeysOfServer result() const;
  std::uint64_t most_keys() const { return state_.most_keys; }

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
  // A server of 1.4.31 to 1.4.39 sends no END.
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
  bool retries_ = false;
  int refused_ends_ = 0;               // answers to come that end no dump
  std::optional<SteadyTime> ends_at_;  // unset: it was asked for
  std::string buffer_;
  LiveKeysOfServer result_;
};

}  // namespace mcds
