// The table of the doctor's checks. Each has a name, its worst severity, the data it needs, the test, its
// meaning and advice. `mcds doctor --checks` and the man page are generated from it.
//
// A test only adds findings. Missing data makes none; unknowns() lists the checks that were not judged.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/json.hpp"
#include "common/operations/doctor/examination.hpp"

namespace mcds::doctor {

enum class Severity { note, warning, problem };
const char* name_of(Severity severity);

// The data of a server that a check needs.
enum class Needs { nothing, stats, settings, items, slabs, live_keys, connections };
const char* name_of(Needs needs);

class Diagnosis;
// Test one server, or the whole pool.
using ServerCheck = void(const ServerSnapshot& snapshot, Diagnosis& diagnosis);
using PoolCheck = void(const Examination& seen, Diagnosis& diagnosis);

struct Check {
  const char* name;
  Severity severity;  // the worst possible
  const char* about;
  Needs needs;
  std::variant<ServerCheck*, PoolCheck*> test;
  const char* sentence;  // what it means
  const char* advice;    // what to do; SERVER stands for the first of the servers
};

std::span<const Check> all_checks();
// Returns an empty string if a check has this name, otherwise an error message.
std::string no_check(std::string_view name);

struct CheckResult {
  const Check* check;
  Severity severity;
  std::vector<std::size_t> servers;  // the worst first; empty: the pool
  JsonObject evidence;               // for the first server
  std::vector<JsonObject> others;    // for the second server and so on, if they were tested separately
  bool accepted = false;             // the configuration declares it intended
};

// Collects the findings of one check.
class Diagnosis {
 public:
  Diagnosis(const Check& check, const Examination& seen) : check_(&check), seen_(seen) {}
  const Check& check() const { return *check_; }
  const Examination& seen() const { return seen_; }

  // Adds a finding for one server. Findings of one severity are merged, the largest `weight` first.
  void add(std::size_t server, JsonObject evidence, Severity severity, double weight = 0);
  // Adds a finding for server().
  void add(JsonObject evidence, Severity severity, double weight = 0) {
    add(server_, std::move(evidence), severity, weight);
  }
  std::size_t server() const { return server_; }
  void use_server(std::size_t server) { server_ = server; }
  // Adds one finding that concerns several servers, or the pool.
  void add_one(std::vector<std::size_t> servers, JsonObject evidence, Severity severity);
  std::vector<CheckResult> take();

 private:
  struct Single {
    std::size_t server;
    JsonObject evidence;
    Severity severity;
    double weight;
  };
  const Check* check_;
  const Examination& seen_;
  std::size_t server_ = 0;
  std::vector<Single> singles_;
  std::vector<CheckResult> found_;
};

using WantedCheck = std::function<bool(const Check&)>;

// Returns the findings of all wanted checks, the most severe first, then in the order of the table.
std::vector<CheckResult> diagnose(const Examination& seen, const WantedCheck& wanted);

// Data that servers do not report, and the checks that need it.
struct Unknown {
  std::vector<std::size_t> servers;
  Needs lacks;
  std::vector<std::string> checks;
};
std::vector<Unknown> unknowns(const Examination& seen, const WantedCheck& wanted);

}  // namespace mcds::doctor
