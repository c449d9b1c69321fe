# dalli: the options are those of Dalli::Client.
require "dalli"

servers, *options = ARGV
options = options.to_h { |option| name, value = option.split("=", 2); [name.to_sym, value] }
servers = servers.split.map do |server|
  host, port, weight = server.split("|")
  port == "0" ? "#{host}:#{weight}" : "#{host}:#{port}:#{weight}"
end
client = Dalli::Client.new(servers, **options)
STDIN.set_encoding("UTF-8").each_line(chomp: true) do |line|
  key, value = line.split("\t")
  client.set(key, value, nil, raw: true) or abort "not stored: #{key}"
end
