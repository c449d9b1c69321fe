import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.ConnectionFactory;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Locator;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.DefaultHashAlgorithm;
import net.spy.memcached.HashAlgorithm;
import net.spy.memcached.KetamaConnectionFactory;
import net.spy.memcached.KetamaNodeKeyFormatter;
import net.spy.memcached.MemcachedClient;

/** locator=ARRAY_MOD|CONSISTENT and hash=NAME; ketama=plain; ketama=SPYMEMCACHED|LIBMEMCACHED with weights, or weights=none. */
public final class SpymemcachedWriter {
  private static ConnectionFactory factory(Map<String, String> options, Map<InetSocketAddress, Integer> weights) {
    String ketama = options.get("ketama");
    if ("plain".equals(ketama)) {
      return new KetamaConnectionFactory();
    }
    if (ketama != null) {
      return new KetamaConnectionFactory(
          DefaultConnectionFactory.DEFAULT_OP_QUEUE_LEN,
          DefaultConnectionFactory.DEFAULT_READ_BUFFER_SIZE,
          DefaultConnectionFactory.DEFAULT_MAX_RECONNECT_DELAY,
          DefaultHashAlgorithm.KETAMA_HASH,
          KetamaNodeKeyFormatter.Format.valueOf(ketama),
          "none".equals(options.get("weights")) ? new HashMap<>() : weights);
    }
    if (options.isEmpty()) {
      return new DefaultConnectionFactory();
    }
    ConnectionFactoryBuilder builder = new ConnectionFactoryBuilder().setLocatorType(Locator.valueOf(options.get("locator")));
    if (options.containsKey("hash")) {
      HashAlgorithm hash = DefaultHashAlgorithm.valueOf(options.get("hash"));
      builder.setHashAlg(hash);
    }
    return builder.build();
  }

  public static void main(String[] arguments) throws Exception {
    System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
    Logger.getLogger("net.spy.memcached").setLevel(Level.OFF);
    List<InetSocketAddress> servers = new ArrayList<>();
    Map<InetSocketAddress, Integer> weights = new HashMap<>();
    for (String text : arguments[0].split(" ")) {
      String[] part = text.split("\\|");
      servers.add(new InetSocketAddress(part[0], Integer.parseInt(part[1])));
      weights.put(servers.get(servers.size() - 1), Integer.parseInt(part[2]));
    }
    Map<String, String> options = new HashMap<>();
    for (int i = 1; i < arguments.length; i++) {
      String[] part = arguments[i].split("=", 2);
      options.put(part[0], part[1]);
    }
    MemcachedClient client = new MemcachedClient(factory(options, weights), servers);
    // What is sent before a server is connected goes to another one.
    int dead = Integer.parseInt(System.getenv().getOrDefault("DEAD_SERVERS", "0"));
    while (client.getAvailableServers().size() < servers.size() - dead) {
      Thread.sleep(1);
    }
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] pair = line.split("\t");
      if (!client.set(pair[0], 0, pair[1]).get(20, TimeUnit.SECONDS)) {
        throw new IllegalStateException("not stored: " + pair[0]);
      }
    }
    client.shutdown(20, TimeUnit.SECONDS);
  }
}
