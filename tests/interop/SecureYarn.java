import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A one-node YARN with Kerberos. Arguments: a directory for all its files, the principal of its services, their keytab.
 * Writes yarn-site.xml for its clients and says "YARN is ready". Started from source by tests/interop/yarn.py.
 */
public class SecureYarn {
    public static void main(String[] arguments) {
        try {
            Path directory = Path.of(arguments[0]);
            System.setProperty("test.build.data", directory.resolve("data").toString());
            YarnConfiguration configuration = configuration(directory, arguments[1], arguments[2]);
            // Hadoop decides once for the process whether it is secure, before any service is there to say so.
            UserGroupInformation.setConfiguration(configuration);
            UserGroupInformation.loginUserFromKeytab(arguments[1], arguments[2]);
            MiniYARNCluster cluster = new MiniYARNCluster("yarn", 1, 1, 1);
            cluster.init(configuration);
            cluster.start();
            cluster.waitForNodeManagersToConnect(60_000);
            try (OutputStream output = new FileOutputStream(directory.resolve("yarn-site.xml").toFile())) {
                cluster.getConfig().writeXml(output);
            }
            System.out.println("YARN is ready");
            Thread.currentThread().join();
        } catch (Throwable failure) {
            failure.printStackTrace();
            // Threads of what has been started already would keep this process.
            Runtime.getRuntime().halt(1);
        }
    }

    private static YarnConfiguration configuration(Path directory, String principal, String keytab) {
        YarnConfiguration configuration = new YarnConfiguration();
        configuration.set("fs.defaultFS", "file:///");
        configuration.set("hadoop.tmp.dir", directory.resolve("tmp").toString());
        configuration.set("hadoop.security.authentication", "kerberos");
        for (String service : new String[] {"resourcemanager", "nodemanager"}) {
            configuration.set("yarn." + service + ".principal", principal);
            configuration.set("yarn." + service + ".keytab", keytab);
        }
        configuration.setBoolean("yarn.resourcemanager.webapp.delegation-token-auth-filter.enabled", false);
        configuration.set("yarn.resourcemanager.scheduler.class",
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler");
        configuration.setInt("yarn.scheduler.minimum-allocation-mb", 128);
        configuration.setInt("yarn.nodemanager.resource.memory-mb", 3072);
        configuration.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
        configuration.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
        // A disk that is nearly full is no reason to refuse a small job.
        configuration.setBoolean("yarn.nodemanager.disk-health-checker.enable", false);
        return configuration;
    }
}
