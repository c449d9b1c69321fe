// Trial and Actor are what a model sees of the driver that runs it: every schedule in turn
// (exploration.hpp), or random ones with any faults (simulation.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/primitives/context.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds {

// Returns the context of a client of a structure with several copies.
inline Context in_copies(Context context, std::size_t copies) {
  context.copies = copies;
  return context;
}

class Trial;

// A client. Its sleeps pass virtual time.
class Actor : public Clock {
 public:
  // Runs an operation, whose result `act` returns as text. Returns false after a Failure, which is recorded.
  virtual bool operation(const std::string& name, const std::function<std::string()>& act) = 0;
  // Return the steps at which the current or last operation began, and at which it ended.
  virtual std::size_t begun() const = 0;
  virtual std::size_t ended() const = 0;
  virtual std::size_t index() const = 0;
  virtual Trial& run() = 0;
};

// One run.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual void client(std::function<void(Context&, Actor&)> body) = 0;
  // Sets a function that is called when every client has returned or died and nothing is in flight.
  virtual void check(std::function<std::optional<std::string>(Context& observer)> check) = 0;
  // Reports a violation before the end of the run.
  virtual void violated(const std::string& what) = 0;

  virtual MemoryCluster& servers() = 0;
  virtual VirtualTime& time() = 0;
  virtual std::size_t steps() const = 0;
  // Returns true if items were lost, so that data may be missing.
  virtual bool lost_data() const = 0;
  // Returns a context without faults or delays.
  virtual Context& observer() = 0;
};

// Builds one run: the initial contents, the clients, the check.
using Scenario = std::function<void(Trial& run)>;

}  // namespace mcds
