import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Date;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.transcoders.BaseSerializingTranscoder;
import net.spy.memcached.transcoders.SerializingTranscoder;
import net.spy.memcached.transcoders.Transcoder;
import net.spy.memcached.transcoders.WhalinTranscoder;

/** Stores values by spymemcached, reads them back and prints each as the client has read it: NAME HOST:PORT compress|plain. */
public final class SpymemcachedValues {
  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      out.append(c == '"' || c == '\\' || c < ' ' || c > '~' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
    }
    return out.append('"').toString();
  }

  private static String plain(Object value) {
    if (value instanceof byte[]) {
      byte[] bytes = (byte[]) value;
      String text = new String(bytes, StandardCharsets.UTF_8);
      return Arrays.equals(text.getBytes(StandardCharsets.UTF_8), bytes)
          ? quoted(text) : "{\"@b64\":\"" + Base64.getEncoder().encodeToString(bytes) + "\"}";
    }
    if (value instanceof Date) {
      return quoted(String.format("%tFT%<tT.%<tLZ", ((Date) value).toInstant().atZone(java.time.ZoneOffset.UTC)));
    }
    if (value instanceof Float || value instanceof Double) {
      double number = ((Number) value).doubleValue();
      return Double.isFinite(number) ? value instanceof Float ? Double.toString(number) : value.toString() : "{\"@number\":\"" + number + "\"}";
    }
    return value instanceof Number || value instanceof Boolean ? value.toString() : quoted(value.toString());
  }

  public static void main(String[] arguments) throws Exception {
    System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
    Logger.getLogger("net.spy.memcached").setLevel(Level.OFF);
    String[] address = arguments[1].split(":");
    MemcachedClient client =
        new MemcachedClient(new BinaryConnectionFactory(), List.of(new InetSocketAddress(address[0], Integer.parseInt(address[1]))));
    Transcoder<Object> transcoder = arguments[0].endsWith("whalin") ? new WhalinTranscoder() : new SerializingTranscoder();
    ((BaseSerializingTranscoder) transcoder).setCompressionThreshold(arguments[2].equals("compress") ? 100 : 1 << 30);
    List<Object> values = new ArrayList<>(Arrays.asList(
        "text", "naïve ключ 😀", "", "line\r\nline\\", true, false, 0, -5, Integer.MAX_VALUE, Integer.MIN_VALUE, 1L << 40, Long.MIN_VALUE,
        -1L, (byte) 7, (byte) -7, 1.5f, -1.25e-3, 1e300, Double.POSITIVE_INFINITY, new Date(1500000000123L), new byte[] {-1, 0, 5},
        "bytes".getBytes(StandardCharsets.UTF_8), "compressible text, ".repeat(5000)));
    if (arguments[0].endsWith("whalin")) {
      values.addAll(Arrays.asList('x', 'é', (short) 300, (short) -300, new StringBuilder("builder")));
    }
    for (int number = 0; number < values.size(); number++) {
      String key = arguments[0] + "-" + arguments[2] + "-" + number;
      if (!client.set(key, 0, values.get(number), transcoder).get(20, TimeUnit.SECONDS)) {
        throw new IllegalStateException("not stored: " + key);
      }
      System.out.println("{\"key\":\"" + key + "\",\"value\":" + plain(client.get(key, transcoder)) + "}");
    }
    client.shutdown(20, TimeUnit.SECONDS);
  }
}
