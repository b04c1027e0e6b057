# Java and Kotlin: a Maven repository with what goes to Central, and as one archive, which Central's portal takes.
# shellcheck shell=sh disable=SC2154
pack_jvm() { # LANGUAGE ARTIFACT
    "$MAKE_COMMAND" --no-print-directory -C "bindings/$1" dist && mkdir -p "$packages/maven" &&
        cp -R "$target/$1/dist/." "$packages/maven" &&
        python3 scripts/packages/central.py settle "$packages/maven" "dev.ramway:$2:$version" &&
        python3 scripts/packages/central.py check "$packages/maven" "dev.ramway:$2:$version" &&
        python3 scripts/packages/central.py bundle "$packages/maven" "dev.ramway:$2:$version" "$packages/$2-$version-maven.zip"
}
# The archives are in a repository of their own; everything else comes into one that is kept.
from_packages() { # ARGUMENT... of mvn
    {
        echo '<settings><profiles><profile><id>packages</id><repositories><repository><id>packages</id>'
        echo "<url>file://$packages/maven</url></repository></repositories></profile></profiles>"
        echo '<activeProfiles><activeProfile>packages</activeProfile></activeProfiles></settings>'
    } >"$tmp/maven.xml"
    mvn -q -B -gs "$tmp/maven.xml" -Dmaven.repo.local="$build/m2" -Dkotlin.compiler.daemon=false "$@"
}

# A project with the dependency of the page; then the page's other way: the jar alone, and the program's source.
try_java() (
    mkdir -p "$tmp/java/src/main/java" && rm -rf "$build/m2/dev/ramway" || return 1
    for program in Producer Consumer; do
        block docs/start/java.md java "// $program.java" >"$tmp/java/src/main/java/$program.java"
    done
    {
        echo '<project><modelVersion>4.0.0</modelVersion><groupId>first</groupId><artifactId>first</artifactId><version>1</version>'
        echo '<properties><maven.compiler.release>22</maven.compiler.release>'
        echo "<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties><dependencies>"
        block docs/start/java.md xml
        echo '</dependencies><build><plugins><plugin><groupId>org.apache.maven.plugins</groupId>'
        echo '<artifactId>maven-compiler-plugin</artifactId><version>3.14.0</version></plugin></plugins></build></project>'
    } >"$tmp/java/pom.xml"
    from_packages -f "$tmp/java/pom.xml" compile || return 1
    run="timeout 60 $JAVA_HOME/bin/java --enable-native-access=ALL-UNNAMED -cp"
    with="$run $build/m2/dev/ramway/ramway/$version/ramway-$version.jar:$tmp/java/target/classes"
    both 'type 1, tag 7: hello' "$with Producer" "$with Consumer" && mkdir "$tmp/java/alone" && cd "$tmp/java/alone" &&
        cp ../src/main/java/*.java . && from_packages dependency:copy -Dartifact="dev.ramway:ramway:$version" -DoutputDirectory=. &&
        both 'type 1, tag 7: hello' "$run ramway-$version.jar Producer.java" "$run ramway-$version.jar Consumer.java"
)
# The project and the lines of the page.
try_kotlin() (
    mkdir -p "$tmp/kotlin/src/main/kotlin" && rm -rf "$build/m2/dev/ramway" &&
        block docs/start/kotlin.md kotlin >"$tmp/kotlin/src/main/kotlin/Main.kt" &&
        block docs/start/kotlin.md xml '<project>' >"$tmp/kotlin/pom.xml" && cd "$tmp/kotlin" &&
        from_packages compile dependency:build-classpath -Dmdep.outputFile=target/classpath || return 1
    run="timeout 60 $JAVA_HOME/bin/java --enable-native-access=ALL-UNNAMED -cp target/classes:$(cat target/classpath) MainKt"
    both 'message 3' "$run" "$run receive"
)
jvm() { # LANGUAGE ARTIFACT
    if ! JAVA_HOME=$(sh scripts/jdk.sh 2>/dev/null) || ! have mvn; then absent "$1" "a JDK of version 22 or later, or mvn, is missing"; return; fi
    export JAVA_HOME
    pack "$1: what goes to Central" pack_jvm "$1" "$2" && try "$1: the first program" "try_$1"
}
package_java() { jvm java ramway; }
package_kotlin() {
    # It asks for the Java port, which is in the same repository.
    [ -d "$packages/maven/dev/ramway/ramway/$version" ] || package_java
    jvm kotlin ramway-kotlin
}
