# Stores values by dalli or Rails' MemCacheStore, reads them back and prints each as the client has read it.
# Usage: values.rb dalli|rails HOST:PORT compress|plain
require "json"
require "base64"
require "set"

CLIENT, ADDRESS, MODE = ARGV
Pair = Struct.new(:left, :right)

class Point
  def initialize(x, y)
    @x = x
    @y = y
  end
end

def plain(value)
  case value
  when String
    text = value.dup.force_encoding("UTF-8")
    text.valid_encoding? ? text : { "@b64" => Base64.strict_encode64(value) }
  when Symbol then value.to_s
  when Float then value.finite? ? value : { "@number" => value.nan? ? "NaN" : value.positive? ? "Infinity" : "-Infinity" }
  when Integer then value.between?(-2**63, 2**64 - 1) ? value : { "@number" => value.to_s }
  when Array then value.map { |one| plain(one) }
  when Hash then value.to_h { |name, one| [name_of(name), plain(one)] }
  when Struct then { "@class" => value.class.name }.merge(value.to_h.to_h { |name, one| [name.to_s, plain(one)] })
  when Range then { "@class" => "Range", "excl" => value.exclude_end?, "begin" => value.begin, "end" => value.end }
  when Point
    { "@class" => "Point" }.merge(value.instance_variables.to_h { |name| [name.to_s.delete("@"), plain(value.instance_variable_get(name))] })
  else value
  end
end

def name_of(name)
  return JSON.generate(plain(name)) unless name.is_a?(String) || name.is_a?(Symbol)
  name.start_with?("@") ? "@#{name}" : name.to_s
end

threshold = MODE == "compress" ? 100 : 1 << 30
if CLIENT == "dalli"
  require "dalli"
  client = Dalli::Client.new(ADDRESS, compression_min_size: threshold)
  store = ->(key, value) { client.set(key, value) }
  read = ->(key) { client.get(key) }
else
  require "active_support"
  require "active_support/cache"
  require "active_support/cache/mem_cache_store"
  client = ActiveSupport::Cache::MemCacheStore.new(ADDRESS, compress: MODE == "compress", compress_threshold: 100)
  store = ->(key, value) { client.write(key, value, expires_in: 3600, version: "v1") }
  read = ->(key) { client.read(key, version: "v1") }
end

shared = [1, 2]
with_default = Hash.new(5).merge("a" => 1)
values = ["text", "naïve ключ 😀", "", "\xff\x00".b, "café".encode("ISO-8859-1"), :symbol, :"ключ", 0, 122, 123, -123, -124, 255, -257, 65_536,
          2**30, 2**62, 2**70, -2**70, true, false, 1.5, -1e300, Float::INFINITY, Float::NAN, [1, [2, [3]], "x", nil],
          { "a" => { b: [true, nil] }, 1 => :one, [1, 2] => "list", nil => 0, "@at" => 1 }, with_default, Pair.new(1, "two"), Point.new(1, Point.new("y", [])),
          (1..5), [shared, shared, :again, :again, "again"], (0..400).to_a, "compressible text, " * 5000, { "list" => ["value "] * 100 }]
values.each_with_index do |value, number|
  key = "#{CLIENT}-#{MODE}-#{number}"
  store.call(key, value)
  puts JSON.generate("key" => key, "value" => plain(read.call(key)))
end
