package load;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The client side of one SCRAM login with a token.
 *
 * <p>The keys are there already, so a login costs a hash and two HMACs. The nonce is unique but not random: nobody is to
 * be kept out here.
 *
 * <p>Source: RFC 5802 section 3; Kafka's extension {@code tokenauth}.
 */
final class Scram {
    private static final String RUN = Long.toString(System.nanoTime(), 36);
    private static long logins;

    /** The hash and the HMAC of a mechanism, made once: only one thread logs in. */
    static final class Hashes {
        final String name;
        final MessageDigest digest;
        final Mac mac;

        Hashes(String mechanism) throws GeneralSecurityException {
            String bits = mechanism.substring("SCRAM-SHA-".length());
            name = "HmacSHA" + bits;
            digest = MessageDigest.getInstance("SHA-" + bits);
            mac = Mac.getInstance(name);
        }

        byte[] hmac(byte[] key, byte[] text) {
            try {
                mac.init(new SecretKeySpec(key, name));
            } catch (GeneralSecurityException impossible) {
                throw new IllegalStateException(impossible);
            }
            return mac.doFinal(text);
        }
    }

    private final Hashes hashes;
    private final Credential credential;
    private final String bare;
    private final String nonce;
    private byte[] authMessage;

    Scram(Hashes hashes, Credential credential) {
        this.hashes = hashes;
        this.credential = credential;
        nonce = RUN + Long.toString(++logins, 36);
        bare = "n=" + credential.name() + ",r=" + nonce + ",tokenauth=true";
    }

    byte[] first() {
        return ascii("n,," + bare);
    }

    /** The salt and the iterations that a server names in its first message. */
    static String[] saltAndIterations(byte[] serverFirst) {
        String[] parts = new String(serverFirst, StandardCharsets.US_ASCII).split(",");
        return new String[] {parts[1].substring(2), parts[2].substring(2)};
    }

    byte[] last(byte[] challenge) {
        String serverFirst = new String(challenge, StandardCharsets.US_ASCII);
        String known = ",s=" + credential.salt() + ",i=" + credential.iterations();
        if (!serverFirst.startsWith("r=" + nonce) || !serverFirst.endsWith(known)) {
            throw new LoadFailed("another nonce, or a salt that was not asked for before, for " + credential.name());
        }
        String withoutProof = "c=biws," + serverFirst.substring(0, serverFirst.length() - known.length());
        authMessage = ascii(bare + "," + serverFirst + "," + withoutProof);
        byte[] proof = hashes.hmac(hashes.digest.digest(credential.clientKey()), authMessage);
        for (int index = 0; index < proof.length; index++) {
            proof[index] ^= credential.clientKey()[index];
        }
        return ascii(withoutProof + ",p=" + Base64.getEncoder().encodeToString(proof));
    }

    /** See that the server knows the token too. */
    void verify(byte[] serverFinal) {
        byte[] signature = hashes.hmac(credential.serverKey(), authMessage);
        if (!MessageDigest.isEqual(serverFinal, ascii("v=" + Base64.getEncoder().encodeToString(signature)))) {
            throw new LoadFailed("a wrong server signature for " + credential.name());
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
