import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Kafka's tools, one after the other in one JVM: one JSON request a line on standard input, {"main": the class,
 * "arguments": [...], "input": text}, one JSON answer a line on standard output, {"status", "stdout", "stderr"}. A tool's
 * exit ends the tool and not the JVM. Ends with its input.
 * Started from source by tests/support/java/tools.py.
 */
public class ToolRunner {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Replaced OUT = new Replaced();
    private static final Replaced ERR = new Replaced();
    private static Integer status;

    /** What ends a tool where System.exit would end the JVM. */
    private static final class Exited extends Error {
    }

    /** A stream whose owner keeps it for ever, such as Scala's console or a log, but that each tool has anew. */
    private static final class Replaced extends OutputStream {
        private ByteArrayOutputStream written = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int one) {
            written.write(one);
        }

        @Override
        public synchronized void write(byte[] bytes, int offset, int length) {
            written.write(bytes, offset, length);
        }

        private synchronized String taken() {
            String text = written.toString(StandardCharsets.UTF_8);
            written = new ByteArrayOutputStream();
            return text;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = System.out;
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        replaceExits();
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
        }
        Runtime.getRuntime().halt(0);
    }

    /** Has Kafka's tools call `exited`. Their class for it is in another package since Kafka 4.4. */
    private static void replaceExits() throws ReflectiveOperationException {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException older) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object ours = Proxy.newProxyInstance(ToolRunner.class.getClassLoader(), new Class<?>[] {procedure},
                (proxy, method, arguments) -> exited((Integer) arguments[0]));
        exit.getMethod("setExitProcedure", procedure).invoke(null, ours);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, ours);
    }

    /** The first exit counts: a tool may catch the error that stands for it, and exit again. */
    private static Object exited(int code) {
        if (status == null) {
            status = code;
        }
        throw new Exited();
    }

    private static Map<String, Object> run(JsonNode request) throws Exception {
        String[] arguments = JSON.convertValue(request.get("arguments"), String[].class);
        System.setIn(new ByteArrayInputStream(request.get("input").asText().getBytes(StandardCharsets.UTF_8)));
        status = null;
        OUT.taken();
        ERR.taken();
        try {
            Class.forName(request.get("main").asText()).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException ended) {
            if (!(ended.getCause() instanceof Exited)) {
                ended.getCause().printStackTrace();
                status = 1;
            }
        }
        return Map.of("status", status == null ? 0 : status, "stdout", OUT.taken(), "stderr", ERR.taken());
    }
}
