// What the doctor looks for: one table of declarations, each with its name, how bad it is at worst, what must
// be known of a server for it, the test, what it means, and what to do. `mcds doctor --checks` and the man
// page are made from the table.
//
// A test only adds what it found. What a server does not tell makes no finding; unknowns() says what could
// not be judged.
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

// What a check needs to know of a server.
enum class Needs { nothing, stats, settings, items, slabs, live_keys, connections };
const char* name_of(Needs needs);

class Diagnosis;
// A test of each server by itself, or of the pool.
using TestServer = void(const Patient& patient, Diagnosis& diagnosis);
using TestPool = void(const Examination& seen, Diagnosis& diagnosis);

struct Check {
  const char* name;
  Severity severity;  // at worst
  const char* about;
  Needs needs;
  std::variant<TestServer*, TestPool*> test;
  const char* sentence;  // what it means
  const char* advice;    // what to do; SERVER stands for the first of the servers
};

std::span<const Check> all_checks();
// Empty if there is a check of this name, else what to say of it.
std::string no_check(std::string_view name);

struct Symptom {
  const Check* check;
  Severity severity;
  std::vector<std::size_t> servers;  // the worst first; empty: the pool
  JsonObject evidence;               // of the first
  std::vector<JsonObject> others;    // of the second server and so on, if they were judged one by one
  bool accepted = false;             // the configuration says that it is meant to be so
};

// What the test of one check adds to.
class Diagnosis {
 public:
  Diagnosis(const Check& check, const Examination& seen) : check_(&check), seen_(seen) {}
  const Check& check() const { return *check_; }
  const Examination& seen() const { return seen_; }

  // Findings of servers one by one: those of one severity are put together, the largest `weight` first.
  void add(std::size_t server, JsonObject evidence, Severity severity, double weight = 0);
  // Of the server that is tested by itself.
  void add(JsonObject evidence, Severity severity, double weight = 0) {
    add(server_, std::move(evidence), severity, weight);
  }
  std::size_t server() const { return server_; }
  void use_server(std::size_t server) { server_ = server; }
  // One finding of several servers, or of the pool.
  void add_one(std::vector<std::size_t> servers, JsonObject evidence, Severity severity);
  std::vector<Symptom> take();

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
  std::vector<Symptom> found_;
};

using WantedCheck = std::function<bool(const Check&)>;

// The worst first; of equal ones in the order of the table.
std::vector<Symptom> diagnose(const Examination& seen, const WantedCheck& wanted);

// What servers do not tell, and the checks that need it.
struct Unknown {
  std::vector<std::size_t> servers;
  Needs lacks;
  std::vector<std::string> checks;
};
std::vector<Unknown> unknowns(const Examination& seen, const WantedCheck& wanted);

}  // namespace mcds::doctor
