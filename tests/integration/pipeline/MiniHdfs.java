import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * An HDFS of one name node and one data node. Argument: a directory for all its files. Says "HDFS is ready at" and its
 * URI. Started from source by tests/integration/pipeline/hdfs.py.
 */
public class MiniHdfs {
    public static void main(String[] arguments) {
        try {
            MiniDFSCluster cluster =
                    new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).numDataNodes(1).build();
            cluster.waitActive();
            System.out.println("HDFS is ready at " + cluster.getURI());
            Thread.currentThread().join();
        } catch (Throwable failure) {
            failure.printStackTrace();
            // Threads of what has been started already would keep this process.
            Runtime.getRuntime().halt(1);
        }
    }
}
