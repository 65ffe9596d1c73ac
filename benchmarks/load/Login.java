package load;

import java.nio.charset.StandardCharsets;

/**
 * What one connection says to log in, as a Java client does: ApiVersions, SaslHandshake, then SaslAuthenticate once
 * (PLAIN) or twice (SCRAM). A client that logs in again leaves ApiVersions out (KIP-368).
 */
final class Login {
    private enum Due {
        API_VERSIONS,
        HANDSHAKE,
        PLAIN,
        CHALLENGE,
        SERVER_FINAL
    }

    private static final byte[] API_VERSIONS = Request.apiVersions();

    private final byte[] handshake;
    private final byte[] plain;
    private final Scram scram;
    private final boolean trust;
    private Due due;

    private Login(Due due, byte[] handshake, byte[] plain, Scram scram, boolean trust) {
        this.due = due;
        this.handshake = handshake;
        this.plain = plain;
        this.scram = scram;
        this.trust = trust;
    }

    static Login plain(String user, String password) {
        byte[] message = ("\0" + user + "\0" + password).getBytes(StandardCharsets.UTF_8);
        return new Login(Due.API_VERSIONS, Request.handshake("PLAIN"), Request.authenticate(message), null, false);
    }

    /**
     * A login with a token.
     *
     * @param trust whether a wrong server signature is let pass; only for the null server, which knows no token
     */
    static Login scram(byte[] handshake, Scram scram, boolean trust) {
        return new Login(Due.API_VERSIONS, handshake, null, scram, trust);
    }

    /** A further login with a token, on a connection that has logged in. */
    static Login scramAgain(byte[] handshake, Scram scram, boolean trust) {
        return new Login(Due.HANDSHAKE, handshake, null, scram, trust);
    }

    /** The first request. */
    byte[] start() {
        return due == Due.API_VERSIONS ? API_VERSIONS : handshake;
    }

    /** Read an answer; the next request, null when the login is done. */
    byte[] next(Answer answer) {
        switch (due) {
            case API_VERSIONS:
                answer.expect(Request.API_VERSIONS);
                due = Due.HANDSHAKE;
                return handshake;
            case HANDSHAKE:
                answer.expect(Request.SASL_HANDSHAKE);
                due = plain != null ? Due.PLAIN : Due.CHALLENGE;
                return plain != null ? plain : Request.authenticate(scram.first());
            case PLAIN:
                answer.expect(Request.SASL_AUTHENTICATE);
                return null;
            case CHALLENGE:
                answer.expect(Request.SASL_AUTHENTICATE);
                due = Due.SERVER_FINAL;
                return Request.authenticate(scram.last(answer.authBytes()));
            default:
                answer.expect(Request.SASL_AUTHENTICATE);
                if (!trust) {
                    scram.verify(answer.authBytes());
                }
                return null;
        }
    }

    /** Whether the next answer of the server is its challenge, which a probe only looks at. */
    boolean awaitsChallenge() {
        return due == Due.CHALLENGE;
    }
}
