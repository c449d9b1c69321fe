// Parses the command line, runs one action and returns its exit code. Every exception that ends a command is
// caught and reported here.
#include <fcntl.h>
#include <nss.h>
#include <unistd.h>

#include <new>
#include <system_error>

#include "common/base/process.hpp"
#include "tools/cli/child.hpp"
#include "tools/cli/fields.hpp"
#include "tools/cli/parse.hpp"

namespace {

using namespace mcds;

// Opens closed standard streams on /dev/null so that they fail, or else the next socket would reuse them.
void keep_standard_streams_open() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != descriptor) dup2(opened, descriptor);
  }
}

// Restricts nsswitch to files and DNS, which are built in. A static program that loads a module of the
// system's own libc crashes unless both have the same version.
void load_no_modules() {
#ifdef MCDS_STATIC
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("passwd", "files");
  __nss_configure_lookup("services", "files");
#endif
}

int report(Session&& session, const Failure& failure) {
  session.output().error(failure);
  return static_cast<int>(status_of(failure.code()));
}

int act(const Verb& verb, Session& session) {
  try {
    session.begin();
    if (session.output().mode() == OutputMode::openmetrics && !verb.gives_metrics())
      throw InvalidInput("-o openmetrics is only for mcds servers and mcds doctor");
    session.output().expect([&verb](const std::string& answer) { return is_declared(verb, answer); });
    ExitStatus status = verb.run()(session);
    session.expect_distinct_servers();
    session.output().flush();
    if (session.output().hid_names()) status = worse(status, ExitStatus::bad_data);
    session.output().report_errors();
    if (session.report_lost()) status = worse(status, ExitStatus::problem);
    // A request that was not sent in time is to be retried, whatever else failed.
    const bool late = status == ExitStatus::unavailable && session.is_too_late();
    return static_cast<int>(late ? ExitStatus::try_again : status);
  } catch (const Failure& failure) {
    session.output().give_up();
    session.output().report_errors();
    session.report_lost();
    const bool late = failure.code() == ErrorCode::unavailable && session.is_too_late();
    const Failure reported = late ? session.too_late(failure.server()) : failure;
    session.output().error(reported);
    return static_cast<int>(status_of(reported.code()));
  }
}

int run(const std::vector<std::string>& arguments, Invocation& invocation) {
  if (!arguments.empty() && arguments.front().starts_with("__")) return run_hidden(arguments);
  parse(arguments, invocation);
  Session session(invocation.globals);
  if (invocation.lacks_words) {
    session.output().raw_error(*invocation.text);
    return static_cast<int>(ExitStatus::usage);
  }
  if (invocation.text) {
    session.output().raw(*invocation.text);
    return 0;
  }
  const int status = act(*invocation.verb, session);
  if (session.signal() != 0) throw Interrupted{session.signal()};
  return status;
}

}  // namespace

int main(int count, char** words) {
  keep_standard_streams_open();
  load_no_modules();
  settle_signals();
  Invocation invocation;
  try {
    return run(std::vector<std::string>(words + 1, words + count), invocation);
  } catch (const Interrupted& interruption) {
    die_of(interruption);
  } catch (const ClosedPipe&) {
    die_of(Interrupted{SIGPIPE});
  } catch (const Failure& failure) {
    return report(Session(invocation.globals), failure);
  } catch (const std::bad_alloc&) {
    return report(Session(invocation.globals), Failure(ErrorCode::system, "out of memory"));
  } catch (const std::system_error& error) {
    return report(Session(invocation.globals),
                  refused_by_system(ErrorCode::system, "cannot start a thread", error.code().value()));
  } catch (const std::exception& error) {
    return report(Session(invocation.globals),
                  Failure(ErrorCode::internal,
                          std::string("internal error: ") + error.what() + "; please report this"));
  }
  return static_cast<int>(ExitStatus::internal);
}
