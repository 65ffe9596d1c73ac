package load;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/**
 * Answers everything at once and does nothing: what the load generator reaches against it is the generator's own limit.
 *
 * <p>The answers are as long as a server's. It prints its port, and ends with its input.
 */
public final class NullServer {
    private static final int API_VERSIONS_BYTES = 420;
    private static final String CHALLENGE_END = "0123456789abcdefghijklmno,s=bnVsbA==,i=4096";

    private final ByteBuffer in = ByteBuffer.allocateDirect(64 * 1024);
    private final ByteBuffer out = ByteBuffer.allocateDirect(64 * 1024);

    private NullServer() {}

    public static void main(String[] arguments) throws IOException {
        Thread watch = new Thread(() -> {
            try {
                System.in.read();
            } catch (IOException gone) {
                // then it ends as well
            }
            System.exit(0);
        });
        watch.setDaemon(true);
        watch.start();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress("127.0.0.1", 0), 1024);
        listener.configureBlocking(false);
        System.out.println(((InetSocketAddress) listener.getLocalAddress()).getPort());
        new NullServer().serve(listener);
    }

    private void serve(ServerSocketChannel listener) throws IOException {
        Selector selector = Selector.open();
        listener.register(selector, SelectionKey.OP_ACCEPT);
        while (true) {
            selector.select(key -> {
                try {
                    if (key.isAcceptable()) {
                        accept(listener, selector);
                    } else {
                        answer((SocketChannel) key.channel());
                    }
                } catch (IOException gone) {
                    key.cancel();
                }
            });
        }
    }

    private static void accept(ServerSocketChannel listener, Selector selector) throws IOException {
        for (SocketChannel channel = listener.accept(); channel != null; channel = listener.accept()) {
            channel.configureBlocking(false);
            channel.register(selector, SelectionKey.OP_READ);
        }
    }

    private void answer(SocketChannel channel) throws IOException {
        if (channel.read(in.clear()) < 0) {
            channel.close();
            return;
        }
        in.flip();
        int apiKey = in.getShort(4);
        out.clear().putInt(0).putInt(in.getInt(8));
        switch (apiKey) {
            case Request.API_VERSIONS -> out.put(new byte[API_VERSIONS_BYTES]);
            case Request.SASL_HANDSHAKE -> out.putShort((short) 0).putInt(0);
            case Request.SASL_AUTHENTICATE -> authenticate();
            case Request.CREATE -> create();
            default -> out.put(new byte[1 + 2 + 8 + 4 + 1]); // tags, no error, a time, no throttle, tags
        }
        channel.write(out.putInt(0, out.position() - 4).flip());
    }

    private void authenticate() {
        byte[] request = new byte[in.limit()];
        in.get(request);
        String text = new String(request, StandardCharsets.US_ASCII);
        int nonce = text.indexOf(",r=");
        boolean first = text.contains("n,,n=");
        String said = first ? text.substring(nonce + 1, text.indexOf(',', nonce + 1)) + CHALLENGE_END : "v=" + "A".repeat(44);
        // tags, no error, no message
        out.put((byte) 0).putShort((short) 0).put((byte) 0);
        out.put((byte) (said.length() + 1)).put(said.getBytes(StandardCharsets.US_ASCII)).putLong(0).put((byte) 0);
    }

    private void create() {
        out.put((byte) 0).putShort((short) 0);
        for (String each : new String[] {"User", "alice", "User", "alice"}) {
            out.put((byte) (each.length() + 1)).put(each.getBytes(StandardCharsets.US_ASCII));
        }
        out.put(new byte[3 * Long.BYTES]).put((byte) 23).put(new byte[22]).put((byte) 65).put(new byte[64]);
        out.putInt(0).put((byte) 0);
    }
}
