import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;

import kafka.server.KafkaConfig;

/**
 * What a broker makes of a server.properties. A line in, a line out: the file in base64 gives the secret key, in base64
 * as well, or a line with "!" and the error.
 */
public class SettingsOracle {
    public static void main(String[] arguments) throws Exception {
        var answers = System.out;
        System.setOut(System.err);  // log4j would write between them
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            answers.println(answer(Base64.getDecoder().decode(line)));
        }
    }

    private static String answer(byte[] file) {
        try {
            var properties = new Properties();
            properties.load(new ByteArrayInputStream(file));  // as Utils.loadProps does
            String key = KafkaConfig.fromProps(properties, false).delegationTokenSecretKey().value();
            return Base64.getEncoder().encodeToString(key.getBytes(StandardCharsets.UTF_8));
        } catch (Exception error) {
            return "!" + error;
        }
    }
}
