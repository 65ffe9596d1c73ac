package load;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * What a client knows of a token after its PBKDF2, which is done before anything is measured.
 *
 * @param name the token id
 * @param salt base64, as the server sends it
 * @param iterations as the server sends them
 * @param clientKey of RFC 5802
 * @param serverKey of RFC 5802
 */
record Credential(String name, String salt, String iterations, byte[] clientKey, byte[] serverKey) {

    /** Read a file of lines with these five, or with the name alone, separated by tabs. */
    static List<Credential> read(Path file) throws IOException {
        List<Credential> found = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t");
            found.add(
                    fields.length == 1
                            ? new Credential(fields[0], "", "", new byte[0], new byte[0])
                            : new Credential(fields[0], fields[1], fields[2], bytes(fields[3]), bytes(fields[4])));
        }
        return found;
    }

    private static byte[] bytes(String base64) {
        return Base64.getDecoder().decode(base64);
    }
}
