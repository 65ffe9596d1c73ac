// Records what the SCRAM client and server of Apache Kafka's own library do, as JSON on the standard output.
// How to run it: see README.md beside this file.

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.ScramExtensionsCallback;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslClient;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCredentialCallback;
import org.apache.kafka.common.utils.AppInfoParser;

public class ScramRecorder {
    static final String TOKEN_ID = "MTIzNDU2Nzg5MDEyMzQ1Ng";
    static final String TOKEN_PASSWORD = Base64.getEncoder().encodeToString(new byte[64]);
    static final String NONCE = "fyko+d2lbbFgONRv9qkxdawL";
    static final String FINAL = "c=biws,r={nonce},p={proof}";

    /** What a client sends: the client-final is a template, whose proof covers what the client really sent. */
    record Case(String name, String first, String last) {
    }

    /** A name and a password that a real client and a real server use with each other. */
    record Login(String name, String username, String password, boolean token) {
    }

    public static void main(String[] arguments) throws Exception {
        List<String> exchanges = new ArrayList<>();
        List<String> cases = new ArrayList<>();
        for (ScramMechanism mechanism : ScramMechanism.values()) {
            for (Login login : logins()) {
                exchanges.add(exchange(mechanism, login));
            }
            for (Case one : cases()) {
                cases.add(attempt(mechanism, one));
            }
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        out.printf("{%n  \"origin\": %s,%n", quote("ScramSaslServer and ScramSaslClient of kafka-clients "
                + AppInfoParser.getVersion() + ", recorded by ScramRecorder.java"));
        out.printf("  \"token_id\": %s,%n  \"token_password\": %s,%n", quote(TOKEN_ID), quote(TOKEN_PASSWORD));
        out.printf("  \"exchanges\": [%n    %s%n  ],%n", String.join(",\n    ", exchanges));
        out.printf("  \"cases\": [%n    %s%n  ]%n}%n", String.join(",\n    ", cases));
    }

    static List<Login> logins() {
        return List.of(
                new Login("a user", "alice", "alice-secret", false),
                new Login("a name with comma and equals sign", "a=b,c=2C", "x,y=z", false),
                new Login("a password outside ASCII", "alice", "Pa\u00dfwort \u2168 \ufb01", false),
                new Login("a delegation token", TOKEN_ID, TOKEN_PASSWORD, true));
    }

    static List<Case> cases() {
        String named = "n=" + TOKEN_ID + ",r=" + NONCE;
        String token = "n,," + named + ",tokenauth=true";
        List<Case> cases = new ArrayList<>();
        // client-first
        cases.add(new Case("tokenauth=true", token, FINAL));
        for (String value : List.of("TRUE", "True", "false", "yes", "1", " true", "", "true\n", "true,")) {
            cases.add(new Case("tokenauth=" + value, "n,," + named + ",tokenauth=" + value, FINAL));
        }
        cases.add(new Case("TokenAuth=true", "n,," + named + ",TokenAuth=true", FINAL));
        cases.add(new Case("no extension", "n,," + named, FINAL));
        cases.add(new Case("extension without =", "n,," + named + ",tokenauth", FINAL));
        cases.add(new Case("extension with a digit in its name", "n,," + named + ",tokenauth2=true", FINAL));
        cases.add(new Case("gs2 header y", "y,," + named + ",tokenauth=true", FINAL));
        cases.add(new Case("gs2 header p", "p=tls-unique,," + named + ",tokenauth=true", FINAL));
        cases.add(new Case("gs2 header missing", named + ",tokenauth=true", FINAL));
        cases.add(new Case("gs2 header n,a=,", "n,a=," + named + ",tokenauth=true", "c=bixhPSw=,r={nonce},p={proof}"));
        for (String name : List.of("\u0000x", "\u00e9", "=", "=2c", "=3", "")) {
            cases.add(new Case("name ends with " + quote(name),
                    "n,,n=" + (name.isEmpty() ? "" : TOKEN_ID + name) + ",r=" + NONCE + ",tokenauth=true", FINAL));
        }
        cases.add(new Case("blank in the nonce", "n,,n=" + TOKEN_ID + ",r=a b,tokenauth=true", FINAL));
        cases.add(new Case("line end after the nonce", "n,," + named + "\n", FINAL));
        cases.add(new Case("empty message", "", FINAL));
        cases.add(new Case("authorization id = token id",
                "n,a=" + TOKEN_ID + "," + named + ",tokenauth=true", "c={gs2},r={nonce},p={proof}"));
        cases.add(new Case("authorization id = owner",
                "n,a=alice," + named + ",tokenauth=true", "c={gs2},r={nonce},p={proof}"));
        cases.add(new Case("authorization id = other",
                "n,a=mallory," + named + ",tokenauth=true", "c={gs2},r={nonce},p={proof}"));
        cases.add(new Case("m=x at the start", "n,,m=x," + named + ",tokenauth=true", FINAL));
        cases.add(new Case("m=x as extension", "n,," + named + ",tokenauth=true,m=x", FINAL));
        cases.add(new Case("tokenauth=true,foo=bar", token + ",foo=bar", FINAL));
        cases.add(new Case("foo=bar,tokenauth=true", "n,," + named + ",foo=bar,tokenauth=true", FINAL));
        cases.add(new Case("tokenauth twice", token + ",tokenauth=false", FINAL));
        cases.add(new Case("unknown token id", "n,,n=unknown,r=" + NONCE + ",tokenauth=true", FINAL));
        // client-final
        cases.add(new Case("other nonce", token, "c=biws,r=other,p={proof}"));
        cases.add(new Case("client's part of the nonce", token, "c=biws,r=" + NONCE + ",p={proof}"));
        cases.add(new Case("server's part of the nonce", token, "c=biws,r={server nonce},p={proof}"));
        cases.add(new Case("characters after the nonce", token, "c=biws,r={nonce}x,p={proof}"));
        cases.add(new Case("characters before the nonce", token, "c=biws,r=x{nonce},p={proof}"));
        cases.add(new Case("c= is not base64", token, "c=biw,r={nonce},p={proof}"));
        cases.add(new Case("c= is base64 of something else", token, "c=eSws,r={nonce},p={proof}"));
        cases.add(new Case("c= is empty", token, "c=,r={nonce},p={proof}"));
        cases.add(new Case("proof flipped", token, "c=biws,r={nonce},p={flipped proof}"));
        cases.add(new Case("proof not base64", token, "c=biws,r={nonce},p=*{proof}"));
        cases.add(new Case("proof unpadded", token, "c=biws,r={nonce},p={unpadded proof}"));
        cases.add(new Case("proof missing", token, "c=biws,r={nonce}"));
        cases.add(new Case("proof with stray bits in its last character", token, "c=biws,r={nonce},p={stray proof}"));
        cases.add(new Case("line end after the proof", token, FINAL + "\n"));
        cases.add(new Case("proof too short", token, "c=biws,r={nonce},p=AAAA"));
        cases.add(new Case("proof too long", token, "c=biws,r={nonce},p={proof twice}"));
        cases.add(new Case("extension in client-final", token, "c=biws,r={nonce},foo=bar,p={proof}"));
        cases.add(new Case("extension in client-final, left out of the proof",
                token, "c=biws,r={nonce},foo=bar,p={proof without extensions}"));
        cases.add(new Case("m=x in client-final", token, "c=biws,r={nonce},m=x,p={proof}"));
        return cases;
    }

    static String exchange(ScramMechanism mechanism, Login login) throws Exception {
        ScramFormatter formatter = new ScramFormatter(mechanism);
        ScramCredential credential = formatter.generateCredential(login.password, 4096);
        ScramSaslServer server = new ScramSaslServer(mechanism, Map.of(), serverSide(login.username, credential));
        ScramSaslClient client = new ScramSaslClient(mechanism, clientSide(login));
        String clientFirst = text(client.evaluateChallenge(new byte[0]));
        String serverFirst = text(server.evaluateResponse(bytes(clientFirst)));
        String clientFinal = text(client.evaluateChallenge(bytes(serverFirst)));
        String serverFinal = text(server.evaluateResponse(bytes(clientFinal)));
        client.evaluateChallenge(bytes(serverFinal));
        String clientNonce = attribute(clientFirst, "r");
        return object(
                "name", quote(login.name), "mechanism", quote(mechanism.mechanismName()),
                "username", quote(login.username), "password", quote(login.password),
                "token", String.valueOf(login.token), "client_nonce", quote(clientNonce),
                "server_nonce", quote(attribute(serverFirst, "r").substring(clientNonce.length())),
                "salt", quote(base64(credential.salt())), "stored_key", quote(base64(credential.storedKey())),
                "server_key", quote(base64(credential.serverKey())),
                "iterations", String.valueOf(credential.iterations()),
                "client_first", quote(clientFirst), "server_first", quote(serverFirst),
                "client_final", quote(clientFinal), "server_final", quote(serverFinal));
    }

    static String attempt(ScramMechanism mechanism, Case one) throws Exception {
        ScramFormatter formatter = new ScramFormatter(mechanism);
        byte[] salt = bytes("0123456789abcdef");
        byte[] salted = formatter.saltedPassword(TOKEN_PASSWORD, salt, 4096);
        ScramCredential credential = formatter.generateCredential(salt, salted, 4096);
        ScramSaslServer server = new ScramSaslServer(mechanism, Map.of(), serverSide(TOKEN_ID, credential));
        String serverFirst = "";
        String clientFinal = "";
        String serverFinal = "";
        String outcome = "fails at client-first";
        String error = "";
        try {
            serverFirst = text(server.evaluateResponse(bytes(one.first)));
            outcome = "fails at client-final";
            clientFinal = fill(formatter, salted, one, serverFirst);
            serverFinal = text(server.evaluateResponse(bytes(clientFinal)));
            outcome = "succeeds";
        } catch (Exception refusal) {
            error = refusal.getClass().getSimpleName() + ": " + refusal.getMessage();
        }
        return object("name", quote(one.name), "mechanism", quote(mechanism.mechanismName()),
                "client_first", quote(one.first), "server_first", quote(serverFirst),
                "client_final", quote(clientFinal), "server_final", quote(serverFinal),
                "outcome", quote(outcome), "error", quote(error));
    }

    /** Fills a template in; the proof covers the bytes that were sent, as RFC 5802 says. */
    static String fill(ScramFormatter formatter, byte[] salted, Case one, String serverFirst) throws Exception {
        String[] gs2 = one.first.split(",", 3);
        String bare = gs2[2];
        String nonce = attribute(serverFirst, "r");
        String filled = one.last.replace("{nonce}", nonce)
                .replace("{server nonce}", nonce.substring(attribute(bare, "r").length()))
                .replace("{gs2}", base64(bytes(gs2[0] + "," + gs2[1] + ",")));
        String withoutProof = filled.contains(",p=") ? filled.substring(0, filled.lastIndexOf(",p=")) : filled;
        byte[] proof = proof(formatter, salted, bare + "," + serverFirst + "," + withoutProof);
        byte[] flipped = proof.clone();
        flipped[0] ^= 1;
        byte[] twice = Arrays.copyOf(proof, 2 * proof.length);
        String proofText = base64(proof);
        String unpadded = proofText.replace("=", "");
        String padding = proofText.substring(unpadded.length());
        char stray = (char) (unpadded.charAt(unpadded.length() - 1) + 1);
        byte[] plain = proof(formatter, salted,
                bare + "," + serverFirst + "," + withoutProof.replace(",foo=bar", ""));
        return filled.replace("{proof}", proofText).replace("{flipped proof}", base64(flipped))
                .replace("{unpadded proof}", unpadded).replace("{proof twice}", base64(twice))
                .replace("{stray proof}", unpadded.substring(0, unpadded.length() - 1) + stray + padding)
                .replace("{proof without extensions}", base64(plain));
    }

    static byte[] proof(ScramFormatter formatter, byte[] salted, String authMessage) throws Exception {
        byte[] clientKey = formatter.clientKey(salted);
        return ScramFormatter.xor(clientKey, formatter.hmac(formatter.storedKey(clientKey), bytes(authMessage)));
    }

    static CallbackHandler serverSide(String known, ScramCredential credential) {
        return callbacks -> {
            String name = ((NameCallback) callbacks[0]).getDefaultName();
            Callback wanted = callbacks[1];
            boolean found = name.equals(known);
            if (wanted instanceof DelegationTokenCredentialCallback token && found) {
                token.scramCredential(credential);
                token.tokenOwner("alice");
                token.tokenExpiryTimestamp(Long.MAX_VALUE);
            } else if (wanted instanceof ScramCredentialCallback user && found && !known.equals(TOKEN_ID)) {
                user.scramCredential(credential);
            }
        };
    }

    static CallbackHandler clientSide(Login login) {
        return callbacks -> {
            for (Callback callback : callbacks) {
                if (callback instanceof NameCallback name) {
                    name.setName(login.username);
                } else if (callback instanceof PasswordCallback password) {
                    password.setPassword(login.password.toCharArray());
                } else if (callback instanceof ScramExtensionsCallback extensions && login.token) {
                    extensions.extensions(Map.of("tokenauth", "true"));
                }
            }
        };
    }

    static String attribute(String message, String name) {
        return Arrays.stream(message.split(",")).filter(part -> part.startsWith(name + "="))
                .findFirst().map(part -> part.substring(2)).orElse("");
    }

    static String object(String... namesAndValues) {
        List<String> members = new ArrayList<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            members.add(quote(namesAndValues[i]) + ": " + namesAndValues[i + 1]);
        }
        return "{" + String.join(", ", members) + "}";
    }

    static String quote(String text) {
        return text.chars().mapToObj(c -> c == '"' || c == '\\' ? "\\" + (char) c
                : c < ' ' || c > '~' ? String.format("\\u%04x", c) : String.valueOf((char) c))
                .collect(Collectors.joining("", "\"", "\""));
    }

    static String base64(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }

    static String text(byte[] message) {
        return new String(message, StandardCharsets.UTF_8);
    }

    static byte[] bytes(String message) {
        return message.getBytes(StandardCharsets.UTF_8);
    }
}
