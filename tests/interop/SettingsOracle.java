import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;

import kafka.server.KafkaConfig;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.types.Password;

/**
 * What a broker makes of a server.properties, and a client of a client.properties. A line in, a line out: the words
 * "broker" or "client", a key, and the file in base64 give the value of the key, in base64 as well, or a line with "!"
 * and the error. The keys of a broker that has an accessor of its own are asked there.
 */
public class SettingsOracle {
    public static void main(String[] arguments) throws Exception {
        var answers = System.out;
        System.setOut(System.err);  // log4j would write between them
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            answers.println(answer(words[0], words[1], Base64.getDecoder().decode(words[2])));
        }
    }

    private static String answer(String who, String key, byte[] file) {
        try {
            var properties = new Properties();
            properties.load(new ByteArrayInputStream(file));  // as Utils.loadProps does
            Object value = who.equals("broker") ? ofBroker(key, properties) : value(new AdminClientConfig(properties), key);
            return Base64.getEncoder().encodeToString(String.valueOf(value).getBytes(StandardCharsets.UTF_8));
        } catch (Exception error) {
            return ("!" + error).replace("\n", " ");
        }
    }

    private static Object ofBroker(String key, Properties properties) {
        KafkaConfig config = KafkaConfig.fromProps(properties, false);
        if (key.equals("delegation.token.secret.key")) {
            return config.tokenAuthEnabled() ? config.delegationTokenSecretKey().value() : "";
        }
        return key.equals("broker.id") ? config.brokerId() : value(config, key);
    }

    private static Object value(AbstractConfig config, String key) {
        Map<String, ?> values = config.values();
        Object value = values.containsKey(key) ? values.get(key) : config.originals().get(key);
        return value instanceof Password password ? password.value() : value;
    }
}
