import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import javax.security.auth.x500.X500Principal;

import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * What Java and Kafka make of names in certificates. A line in, a line out, every word in base64:
 * "name DER" gives the name as text, "map RULES NAME" gives the principal's name, or a line with "!" and the error.
 */
public class PrincipalOracle {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
        }
    }

    private static String answer(String[] words) {
        try {
            String text = words[0].equals("name")
                ? new X500Principal(decoded(words[1])).getName()
                : SslPrincipalMapper.fromRules(text(words[1])).getName(text(words[2]));
            return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
        } catch (Exception error) {
            return "!" + error.getClass().getSimpleName();
        }
    }

    private static byte[] decoded(String word) {
        return Base64.getDecoder().decode(word);
    }

    private static String text(String word) {
        return new String(decoded(word), StandardCharsets.UTF_8);
    }
}
