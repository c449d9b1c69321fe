// Declare, parse, run one action; the only catch; the exit code.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <string>
#include <vector>

#include "tools/cli/describe.hpp"
#include "tools/cli/parse.hpp"

namespace {

using namespace mcds;

// A closed standard stream would be reused by the next socket: give each a descriptor that fails as it should.
void keep_standard_streams_open() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != descriptor) dup2(opened, descriptor);
  }
}

int report(const Session& session, const Failure& failure) {
  session.output().error(failure);
  return static_cast<int>(status_of(failure.code()));
}

int act(const Verb& verb, Session& session) {
  try {
    const ExitStatus status = verb.run()(session);
    session.output().flush();
    return static_cast<int>(status);
  } catch (const Failure& failure) {
    return report(session, failure);
  }
}

int run(const std::vector<std::string>& arguments, Invocation& invocation) {
  if (!arguments.empty() && arguments.front().starts_with("__")) return run_hidden(arguments);
  parse(arguments, invocation);
  Session session(invocation.globals);
  if (invocation.text) {
    session.output().raw(*invocation.text);
    return 0;
  }
  return act(*invocation.verb, session);
}

}  // namespace

int main(int count, char** words) {
  keep_standard_streams_open();
  std::signal(SIGPIPE, SIG_IGN);
  Invocation invocation;
  try {
    return run(std::vector<std::string>(words + 1, words + count), invocation);
  } catch (const ClosedPipe&) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  } catch (const Failure& failure) {
    return report(Session(invocation.globals), failure);
  } catch (const std::bad_alloc&) {
    return report(Session(invocation.globals), Failure(ErrorCode::system, "out of memory"));
  } catch (const std::exception& error) {
    return report(Session(invocation.globals),
                  Failure(ErrorCode::internal, std::string("a bug in mcds: ") + error.what()));
  }
  return static_cast<int>(ExitStatus::internal);
}
