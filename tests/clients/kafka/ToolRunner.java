import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Calls the main methods of Kafka's command line tools one after another: a JVM for each of fifty calls would cost more than
 * all that they do. The tools' own classes are loaded anew for every call, since some keep counts in static fields; the
 * client library under them stays.
 *
 * <p>Arguments: the jar that holds the tools, which must not be on the class path. One JSON object per line in,
 * {"main", "arguments", "stdin"}, one out, {"exit", "stdout", "stderr"}.
 */
public final class ToolRunner {
    /** What a tool's wish to exit becomes, so that it ends there. */
    private static final class ExitWish extends Error {}

    /** One call of one tool. */
    private static final class Call implements Exit.Procedure, Exit.ShutdownHookAdder {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private final ByteArrayOutputStream err = new ByteArrayOutputStream();
        private final List<Runnable> hooks = new ArrayList<>();
        private Integer code;

        void run(ClassLoader loader, String main, String[] arguments, String stdin) throws Exception {
            System.setIn(new ByteArrayInputStream(stdin.getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            Exit.setExitProcedure(this);
            Exit.setHaltProcedure(this);
            Exit.setShutdownHookAdder(this);
            Thread.currentThread().setContextClassLoader(loader);
            try {
                loader.loadClass(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
                end(0, null);
            } catch (InvocationTargetException failure) {
                if (!(failure.getCause() instanceof ExitWish)) {
                    failure.getCause().printStackTrace();
                    end(1, null);
                }
            }
            // As the JVM does at its end: the console producer sends what it still holds in one.
            hooks.forEach(Runnable::run);
        }

        @Override
        public void execute(int status, String message) {
            end(status, message);
            throw new ExitWish();
        }

        /** The first wish counts. Some tools catch everything, also what ends them here, and then wish to exit with 1. */
        private void end(int status, String message) {
            if (code == null) {
                code = status;
                if (message != null) {
                    System.err.println(message);
                }
                System.setOut(new PrintStream(OutputStream.nullOutputStream()));
                System.setErr(new PrintStream(OutputStream.nullOutputStream()));
            }
        }

        @Override
        public void addShutdownHook(String name, Runnable hook) {
            hooks.add(hook);
        }
    }

    public static void main(String[] arguments) throws Exception {
        URL[] toolJar = {Path.of(arguments[0]).toUri().toURL()};
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            JsonNode wanted = mapper.readTree(line);
            String[] options = mapper.convertValue(wanted.get("arguments"), String[].class);
            Call call = new Call();
            try (URLClassLoader loader = new URLClassLoader(toolJar, ToolRunner.class.getClassLoader())) {
                call.run(loader, wanted.get("main").asText(), options, wanted.get("stdin").asText());
            }
            Map<String, Object> answer =
                    Map.of(
                            "exit", call.code,
                            "stdout", call.out.toString(StandardCharsets.UTF_8),
                            "stderr", call.err.toString(StandardCharsets.UTF_8));
            answers.println(mapper.writeValueAsString(answer));
        }
    }
}
