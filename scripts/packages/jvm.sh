# Java and Kotlin: a Maven repository with what goes to Central, and as one archive, which Central's portal takes.
# shellcheck shell=sh disable=SC2154
pack_jvm() { # LANGUAGE ARTIFACT
    "$MAKE_COMMAND" --no-print-directory -C "bindings/$1" dist && mkdir -p "$packages/maven" &&
        cp -R "$target/$1/dist/." "$packages/maven" &&
        python3 scripts/packages/central.py check "$packages/maven" "dev.ramway:$2:$version" &&
        python3 scripts/packages/central.py bundle "$packages/maven" "dev.ramway:$2:$version" "$packages/$2-$version-maven.zip"
}
# A project with the dependency of the page, which is found in the repository of above, and everything else in one that is kept.
maven_project() { # PAGE FOLDER, which has the language's name
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>first</groupId>'
        echo '<artifactId>first</artifactId><version>1</version><properties><maven.compiler.release>22</maven.compiler.release>'
        echo '<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties><repositories><repository>'
        echo "<id>packages</id><url>file://$packages/maven</url></repository></repositories><dependencies>"
        block "$1" xml
        echo "</dependencies><build><sourceDirectory>src/main/$(basename "$2")</sourceDirectory>"
        echo '<plugins><plugin><groupId>org.apache.maven.plugins</groupId>'
        echo '<artifactId>maven-compiler-plugin</artifactId><version>3.14.0</version></plugin>'
        [ "$1" != docs/start/kotlin.md ] || sed -n '/<artifactId>kotlin-maven-plugin/,/<\/plugin>/p' bindings/kotlin/pom.xml |
            sed -e '1i <plugin><groupId>org.jetbrains.kotlin</groupId>' -e "s/\${kotlin.version}/$(stated kotlin.version)/" -e '/<args>/,/<\/args>/d'
        echo '</plugins></build></project>'
    } >"$2/pom.xml"
    rm -rf "$build/m2/dev/ramway"
    mvn -q -B -f "$2/pom.xml" -Dmaven.repo.local="$build/m2" -Dkotlin.compiler.daemon=false compile
}
stated() { sed -n "s/.*<$1>\(.*\)<.*/\1/p" bindings/kotlin/pom.xml; } # PROPERTY

try_java() {
    mkdir -p "$tmp/java/src/main/java"
    for program in Producer Consumer; do
        block docs/start/java.md java "// $program.java" >"$tmp/java/src/main/java/$program.java"
    done
    maven_project docs/start/java.md "$tmp/java" || return 1
    run="timeout 60 $JAVA_HOME/bin/java --enable-native-access=ALL-UNNAMED -cp $build/m2/dev/ramway/ramway/$version/ramway-$version.jar:$tmp/java/target/classes"
    both 'type 1, tag 7: hello' "$run Producer" "$run Consumer" &&
        # The page's other way: the jar alone, and the program's source.
        run="timeout 60 $JAVA_HOME/bin/java --enable-native-access=ALL-UNNAMED -cp $packages/maven/dev/ramway/ramway/$version/ramway-$version.jar" &&
        both 'type 1, tag 7: hello' "$run $tmp/java/src/main/java/Producer.java" "$run $tmp/java/src/main/java/Consumer.java"
}
try_kotlin() {
    mkdir -p "$tmp/kotlin/src/main/kotlin"
    block docs/start/kotlin.md kotlin >"$tmp/kotlin/src/main/kotlin/Main.kt"
    maven_project docs/start/kotlin.md "$tmp/kotlin" || return 1
    # As the page has it.
    mvn -q -B -f "$tmp/kotlin/pom.xml" -Dmaven.repo.local="$build/m2" dependency:build-classpath -Dmdep.outputFile=target/classpath || return 1
    run="timeout 60 $JAVA_HOME/bin/java --enable-native-access=ALL-UNNAMED -cp $tmp/kotlin/target/classes:$(cat "$tmp/kotlin/target/classpath") MainKt"
    both 'message 3' "$run" "$run receive"
}
jvm() { # LANGUAGE ARTIFACT
    if ! JAVA_HOME=$(sh scripts/jdk.sh 2>/dev/null) || ! have mvn; then absent "$1" "a JDK of version 22 or later, or mvn, is missing"; return; fi
    export JAVA_HOME
    step "$1: what goes to Central" pack_jvm "$1" "$2" && try "$1: the first program" "try_$1"
}
package_java() { jvm java ramway; }
package_kotlin() {
    # It asks for the Java port, which is in the same repository.
    [ -d "$packages/maven/dev/ramway/ramway/$version" ] || package_java
    jvm kotlin ramway-kotlin
}
