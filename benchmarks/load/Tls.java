package load;

import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * TLS 1.3 over one connection: a full handshake, or the session of an earlier connection goes on (RFC 8446, section 2.2).
 *
 * <p>Java keeps one session for each peer and uses it once. So every connection that resumes has a name of its own for the
 * server; an engine that knows no peer resumes nothing. Only a full handshake asks whether the server's certificate is
 * trusted: that is how these are known.
 *
 * <p>The server's certificate is not checked, its signature in the handshake is: a client of Java does the latter itself.
 */
final class Tls implements Transport {
    private static final SSLContext CONTEXT = context();
    private static final String[] VERSIONS = {"TLSv1.3"};
    private static final Set<SSLEngine> TRUSTED = Collections.newSetFromMap(new IdentityHashMap<>());
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
    private static final ByteBuffer OUT = ByteBuffer.allocateDirect(64 * 1024);
    private static final ByteBuffer PLAIN = ByteBuffer.allocate(64 * 1024);

    private final SocketChannel channel;
    private final SSLEngine engine;
    private final ByteBuffer in = ByteBuffer.allocate(32 * 1024);
    private boolean ready;
    private boolean full;

    private Tls(SocketChannel channel, SSLEngine engine) throws IOException {
        this.channel = channel;
        this.engine = engine;
        engine.setUseClientMode(true);
        engine.setEnabledProtocols(VERSIONS);
        engine.beginHandshake();
    }

    /** A connection with a full handshake. */
    static Tls full(SocketChannel channel) throws IOException {
        return new Tls(channel, CONTEXT.createSSLEngine());
    }

    /**
     * A connection that resumes a session, if there is one.
     *
     * @param connection which one; what it keeps for this port, no other uses
     */
    static Tls resumed(SocketChannel channel, int connection, int port) throws IOException {
        return new Tls(channel, CONTEXT.createSSLEngine("connection-" + connection, port));
    }

    @Override
    public void advance() throws IOException {
        Transport.read(channel, in);
        in.flip();
        handshake();
        in.compact();
    }

    @Override
    public boolean ready() {
        return ready;
    }

    @Override
    public boolean fullHandshake() {
        return full;
    }

    @Override
    public void send(byte[] frame) throws IOException {
        wrap(ByteBuffer.wrap(frame));
    }

    @Override
    public ByteBuffer receive() throws IOException {
        Transport.read(channel, in);
        in.flip();
        PLAIN.clear();
        while (in.hasRemaining() && PLAIN.remaining() >= engine.getSession().getApplicationBufferSize()) {
            int before = in.remaining();
            engine.unwrap(in, PLAIN); // session tickets give nothing; the engine keeps them
            runTasks();
            if (in.remaining() == before) {
                break; // half a record
            }
        }
        in.compact();
        return PLAIN.flip();
    }

    /** The alert close_notify, which a client of Java sends as well. */
    @Override
    public void end() throws IOException {
        engine.closeOutbound();
        wrap(NOTHING);
    }

    private void handshake() throws IOException {
        while (true) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK:
                    runTasks();
                    break;
                case NEED_WRAP:
                    wrap(NOTHING);
                    break;
                case NEED_UNWRAP:
                    if (engine.unwrap(in, PLAIN.clear()).getStatus() == Status.BUFFER_UNDERFLOW) {
                        return;
                    }
                    break;
                default:
                    ready = true;
                    full = TRUSTED.remove(engine);
                    return;
            }
        }
    }

    private void wrap(ByteBuffer content) throws IOException {
        engine.wrap(content, OUT.clear());
        Transport.write(channel, OUT.flip());
    }

    private void runTasks() {
        while (engine.getHandshakeStatus() == HandshakeStatus.NEED_TASK) {
            engine.getDelegatedTask().run();
        }
    }

    private static SSLContext context() {
        TrustManager anybody = new X509ExtendedTrustManager() {
            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type) {}

            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}

            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {
                TRUSTED.add(engine);
            }

            @Override
            public X509Certificate[] getAcceptedIssuers() {
                return new X509Certificate[0];
            }
        };
        try {
            SSLContext made = SSLContext.getInstance("TLS");
            made.init(null, new TrustManager[] {anybody}, null);
            return made;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
