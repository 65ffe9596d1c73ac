package load;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;

/** The latencies of one phase, exact, and how they were second by second; also the full handshakes of TLS. */
final class Recorder {
    private int[] micros = new int[1 << 16];
    private int count;
    private int fullHandshakes;
    private final List<Integer> seconds = new ArrayList<>();
    private final long beginNs;

    Recorder(long beginNs) {
        this.beginNs = beginNs;
    }

    int count() {
        return count;
    }

    void add(long nowNs, long latencyNs, boolean fullHandshake) {
        fullHandshakes += fullHandshake ? 1 : 0;
        while (nowNs - beginNs >= (seconds.size() + 1) * 1_000_000_000L) {
            seconds.add(count);
        }
        if (count == micros.length) {
            micros = Arrays.copyOf(micros, 2 * count);
        }
        micros[count++] = (int) Math.min(latencyNs / 1000, Integer.MAX_VALUE);
    }

    /** Members of a JSON object. */
    String json(double elapsedSeconds) {
        StringJoiner series = new StringJoiner(",", "[", "]");
        int begin = 0;
        for (int end : seconds) {
            int[] part = sorted(begin, end);
            series.add(String.format("[%d,%d,%d]", part.length, percentile(part, 0.5), percentile(part, 0.99)));
            begin = end;
        }
        int[] all = sorted(0, count);
        return String.format(
                Locale.ROOT,
                "\"count\":%d,\"full_handshakes\":%d,\"seconds\":%.6f,\"p50_us\":%d,\"p99_us\":%d,\"max_us\":%d,\"series\":%s",
                count,
                fullHandshakes,
                elapsedSeconds,
                percentile(all, 0.5),
                percentile(all, 0.99),
                percentile(all, 1),
                series);
    }

    private int[] sorted(int begin, int end) {
        int[] part = Arrays.copyOfRange(micros, begin, end);
        Arrays.sort(part);
        return part;
    }

    /** The smallest value that is not below the given share of all; 0 where there is none. */
    private static int percentile(int[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[Math.max((int) Math.ceil(share * sorted.length), 1) - 1];
    }
}
