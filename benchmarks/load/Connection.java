package load;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/** One connection at a time to the server, with one request under way: connect, log in, then what the engine says. */
final class Connection {
    private final Engine engine;
    private final int number;
    private final Answer answer = new Answer();
    private SocketChannel channel;
    private Transport transport;
    private Login login;
    private short asked;

    /** What the operation under way is part of, and when it was due. */
    Job.Phase phase;

    long dueNs;
    /** When its last operation ended. */
    long endNs;
    /** The token at hand: of RENEW and EXPIRE, and of CYCLE, which also says whether it was renewed. */
    byte[] hmac;

    boolean renewed;
    /** Who logs in, of a PROBE. */
    Credential credential;

    Connection(Engine engine, int number) {
        this.engine = engine;
        this.number = number;
    }

    /** Connect and log in. */
    void open(Selector selector, Job job, Login login) throws IOException {
        this.login = login;
        answer.clear();
        channel = SocketChannel.open();
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        transport = transport(job);
        channel.register(selector, SelectionKey.OP_CONNECT, this);
        channel.connect(job.address);
    }

    private Transport transport(Job job) throws IOException {
        if (!job.tls) {
            return new Transport.Plain(channel);
        }
        return job.resume ? Tls.resumed(channel, number, job.address.getPort()) : Tls.full(channel);
    }

    boolean fullHandshake() {
        return transport.fullHandshake();
    }

    /** Close as a client does that has what it wanted. */
    void end() throws IOException {
        transport.end();
        close();
    }

    void close() throws IOException {
        if (channel != null) {
            channel.close();
            channel = null;
        }
    }

    /** Log in again on the connection that there is. */
    void logInAgain(Login again) throws IOException {
        login = again;
        transport.send(login.start());
    }

    /** Send a request of somebody who has logged in. */
    void ask(short apiKey, byte[] frame) throws IOException {
        asked = apiKey;
        transport.send(frame);
    }

    /** The answer to it, checked for errors. */
    Answer answer() {
        answer.expect(asked);
        return answer;
    }

    short asked() {
        return asked;
    }

    /** Something can be done. */
    void advance(SelectionKey key) throws IOException {
        if (key.isConnectable()) {
            channel.finishConnect();
            key.interestOps(SelectionKey.OP_READ);
            if (!transport.ready()) {
                transport.advance();
            }
            if (transport.ready()) {
                transport.send(login.start());
            }
        } else if (!transport.ready()) {
            transport.advance();
            if (transport.ready()) {
                transport.send(login.start());
            }
        } else {
            ByteBuffer in = transport.receive();
            if (answer.accept(in)) {
                whole();
                answer.clear();
            }
        }
    }

    private void whole() throws IOException {
        if (login == null) {
            engine.answered(this);
            return;
        }
        if (phase == Job.Phase.PROBE && login.awaitsChallenge()) {
            answer.expect(Request.SASL_AUTHENTICATE);
            engine.probed(this, answer.authBytes());
            return;
        }
        byte[] next = login.next(answer);
        if (next != null) {
            transport.send(next);
        } else {
            login = null;
            engine.loggedIn(this);
        }
    }
}
