#include "tools/commands/rehearsal.hpp"

#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "common/base/errors.hpp"
#include "common/base/process.hpp"
#include "common/base/text.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_rehearsed = 200;
constexpr const char* hosts_file = "/etc/hosts";

struct Prohibition {
  const char *setting, *forbids, *allows;
};
constexpr Prohibition prohibitions[] = {{"kernel.unprivileged_userns_clone", "0", "1"},
                                        {"user.max_user_namespaces", "0", "10000"},
                                        {"kernel.apparmor_restrict_unprivileged_userns", "1", "0"}};

bool write_setting(const std::string& path, const std::string& value) {
  std::ofstream file(path);
  return static_cast<bool>(file << value << std::flush);
}

// Returns the reason why this system forbids namespaces, and a remedy.
std::string why_forbidden() {
  for (const Prohibition& one : prohibitions) {
    std::string path = std::string("/proc/sys/") + one.setting;
    std::ranges::replace(path, '.', '/');
    if (text_in(path) != one.forbids + std::string("\n")) continue;
    return std::string(one.setting) + " is " + one.forbids + " here; use sudo, or: sysctl " + one.setting +
           "=" + one.allows;
  }
  return "a container, a chroot or a security module forbids it here; run it outside, or as root with "
         "CAP_SYS_ADMIN";
}

[[noreturn]] void refuse(const std::string& what) {
  const int error = errno;
  if (error != EPERM && error != EACCES && error != ENOSPC)
    throw refused_by_system(ErrorCode::system, "--rehearse cannot " + what, error);
  throw Failure(ErrorCode::system, "--rehearse cannot " + what + ": " + why_forbidden());
}

// Enters the namespaces. Root gets no user namespace, which would remove rights; other users keep their id.
void enter_namespaces() {
  constexpr int separate = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID;
  if (unshare(separate) != 0) {
    const std::string user = std::to_string(geteuid()), group = std::to_string(getegid());
    if (unshare(separate | CLONE_NEWUSER) != 0) refuse("make namespaces");
    write_setting("/proc/self/setgroups", "deny");
    if (!write_setting("/proc/self/uid_map", user + ' ' + user + " 1") ||
        !write_setting("/proc/self/gid_map", group + ' ' + group + " 1"))
      refuse("keep its user");
  }
  // In a chroot, / may not be a mount point (EINVAL). Its mount must then be private already.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 &&
      (errno != EINVAL || text_in("/proc/self/mountinfo").find(" shared:") != std::string::npos))
    refuse("keep its mounts private");
  if (mount("mcds", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0) refuse("hide /run");
  // Lets a memcached that is not root use ports below 1024, as it may in production.
  write_setting("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  write_setting("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0");
}

bool is_below_run(const std::string& path) {
  return std::filesystem::weakly_canonical(path).string().starts_with("/run/");
}

// Starts the loopback interface. The kernel then gives it 127.0.0.1 and ::1.
void set_up_loopback() {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) refuse("set up its network");
}

// Adds the address, without its network, to the loopback interface. Returns false if that failed.
bool add_address(const std::string& address, std::size_t number) {
  const bool is_v4 = address.find(':') == std::string::npos;
  const Descriptor socket(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!is_v4) {
    in6_ifreq request{{}, 128, static_cast<int>(if_nametoindex("lo"))};
    inet_pton(AF_INET6, address.c_str(), &request.ifr6_addr);
    return ioctl(socket, SIOCSIFADDR, &request) == 0;
  }
  ifreq request{};
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "lo:%zu", number);
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  v4->sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &v4->sin_addr);
  if (ioctl(socket, SIOCSIFADDR, &request) != 0) return false;
  v4->sin_addr.s_addr = INADDR_NONE;
  return ioctl(socket, SIOCSIFNETMASK, &request) == 0;
}

}  // namespace

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Rehearsal::Rehearsal(const Pool& list) : servers_(without_repeats(list)) {
  if (servers_.size() > max_rehearsed)
    throw InvalidInput("--rehearse: the list has " + std::to_string(servers_.size()) + " servers; at most " +
                       std::to_string(max_rehearsed) + " can be rehearsed");
  std::set<std::string> addresses;
  for (Server& server : servers_) {
    if (server.is_unix() && !is_below_run(server.socket_path) &&
        access(server.socket_path.c_str(), F_OK) != 0)
      throw InvalidInput("--rehearse: the socket " + server.socket_path +
                         " does not exist; only sockets below /run may be missing");
    if (server.is_unix() || server.host == "localhost") continue;
    if (!is_address(server.host)) {
      const std::size_t number = hosts_.size();
      server.host =
          hosts_.emplace(lower_case(server.host), "198.19.254." + std::to_string(number + 1)).first->second;
    }
    if (!server.host.starts_with("127.") && server.host != "::1") addresses.insert(server.host);
  }
  if (!hosts_.empty() && access(hosts_file, F_OK) != 0)
    throw Failure(ErrorCode::system, "--rehearse needs a file /etc/hosts for the host names of the list");
  enter_namespaces();
  set_up_loopback();
  std::size_t number = 0;
  for (const std::string& address : addresses) {
    if (!add_address(address, ++number)) refuse("add the address " + address);
  }
}

std::string Rehearsal::certificate_names() const {
  std::string names;
  for (const Server& server : servers_) {
    if (is_address(server.host)) names += ",IP:" + server.host;
  }
  for (const auto& [name, address] : hosts_) names += ",DNS:" + name;
  return names;
}

void Rehearsal::finish(const std::string& directory) const {
  // /proc shows the mounter's process namespace. So a child mounts it, which is in the new namespace.
  const pid_t child = fork_process();
  if (child == 0) _exit(mount("proc", "/proc", "proc", 0, nullptr) == 0 ? 0 : 1);
  reap(child);  // fails in a container whose /proc is masked: the processes are then not visible
  if (hosts_.empty()) return;
  char own_name[256] = "";
  gethostname(own_name, sizeof own_name - 1);
  std::string text = "127.0.0.1 localhost " + std::string(own_name) + "\n::1 localhost\n";
  for (const auto& [name, address] : hosts_) text += address + ' ' + name + '\n';
  const std::string path = directory + "/hosts";
  if (!write_setting(path, text)) throw refused_by_system(ErrorCode::cannot_write, "cannot write " + path);
  if (mount(path.c_str(), hosts_file, nullptr, MS_BIND, nullptr) != 0) refuse("name the hosts of the list");
}

void Rehearsal::link_socket(const std::string& path, const std::string& socket) const {
  if (!is_below_run(path)) {
    if (mount(socket.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) refuse("stand in for " + path);
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::filesystem::create_symlink(socket, path, error);
  if (error) throw refused_by_system(ErrorCode::cannot_write, "cannot make " + path, error.value());
}

}  // namespace mcds
