package load;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.channels.Selector;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Reads the name of a job file from each line of standard input, does the job, and says on standard output what
 * happens: an object of JSON a line, the last one of a job with the event {@code done} or {@code failed}.
 *
 * <p>It stays for the next job, so that what has been compiled stays compiled; it ends with its input.
 */
public final class Main {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final String END = "";

    /** Standard input and output. */
    static final class Console {
        private final LinkedBlockingQueue<String> lines = new LinkedBlockingQueue<>();
        private final PrintStream out = System.out;

        void say(String members) {
            out.println("{" + members + "}");
            out.flush();
        }

        /** Whether a further line has come, or the end. */
        boolean hasLine() {
            return !lines.isEmpty();
        }

        private String nextLine() throws InterruptedException {
            return lines.take();
        }

        private void read() {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = in.readLine(); line != null; line = in.readLine()) {
                    lines.add(line);
                }
            } catch (IOException gone) {
                // whoever gave us work is gone
            }
            lines.add(END);
        }
    }

    private Main() {}

    /** The CPU time that this process has used. */
    static long cpuNs() {
        return SYSTEM.getProcessCpuTime();
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Console console = new Console();
        Thread reader = new Thread(console::read);
        reader.setDaemon(true);
        reader.start();
        for (String line = console.nextLine(); !line.equals(END); line = console.nextLine()) {
            if (line.equals("release")) {
                continue; // what it ends has ended
            }
            try (Selector selector = Selector.open()) {
                new Engine(new Job(Path.of(line)), console, selector).run();
                console.say("\"event\":\"done\"");
            } catch (LoadFailed | IOException | GeneralSecurityException failure) {
                String words = failure.getMessage().replace("\\", "\\\\").replace("\"", "\\\"");
                console.say("\"event\":\"failed\",\"reason\":\"" + words + "\"");
            }
        }
    }
}
