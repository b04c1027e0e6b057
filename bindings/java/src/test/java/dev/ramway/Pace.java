package dev.ramway;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/**
 * How long something takes at most. A busy machine makes everything take longer, and then an attempt says nothing: it is made
 * again. What waits for a round of 100 ms does so each time.
 */
final class Pace implements InvocationInterceptor {
    private static final int ATTEMPTS = 20;

    private static final class TooSlow extends AssertionError {
        private static final long serialVersionUID = 1L;

        TooSlow(String text) {
            super(text);
        }
    }

    /** That something took less. */
    static void below(long limit, long took, String what) {
        if (took >= limit) {
            throw new TooSlow(what + ": " + took + ", less than " + limit + " is expected, in " + ATTEMPTS + " attempts");
        }
    }

    @Override
    public void interceptTestMethod(Invocation<Void> test, ReflectiveInvocationContext<Method> context, ExtensionContext all)
            throws Throwable {
        repeat(test, context);
    }

    @Override
    public void interceptTestTemplateMethod(Invocation<Void> test, ReflectiveInvocationContext<Method> context, ExtensionContext all)
            throws Throwable {
        repeat(test, context);
    }

    private static void repeat(Invocation<Void> test, ReflectiveInvocationContext<Method> context) throws Throwable {
        try {
            test.proceed();
            return;
        } catch (TooSlow first) {
            for (int attempt = 2;; attempt++) {
                try {
                    Method method = context.getExecutable();
                    method.setAccessible(true);
                    method.invoke(context.getTarget().orElse(null), context.getArguments().toArray());
                    return;
                } catch (InvocationTargetException e) {
                    if (!(e.getCause() instanceof TooSlow) || attempt == ATTEMPTS) {
                        throw e.getCause();
                    }
                }
            }
        }
    }
}
