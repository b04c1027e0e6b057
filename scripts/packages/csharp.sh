# The NuGet package and that of its symbols.
# shellcheck shell=sh disable=SC2154
pack_csharp() {
    rm -f "$target/csharp/package"/*nupkg
    "$MAKE_COMMAND" --no-print-directory -C bindings/csharp pack && cp "$target/csharp/package"/*"$version"*nupkg "$packages" &&
        python3 scripts/packages/nuget.py settle "$packages"/Ramway.*nupkg &&
        python3 scripts/packages/nuget.py check "$packages/Ramway.$version.nupkg" "$packages/Ramway.$version.snupkg"
}
# The package of above from a folder, which is the only source, and the program of the page.
try_csharp() (
    root=$PWD
    mkdir -p "$tmp/csharp" && block docs/start/csharp.md csharp >"$tmp/csharp/Program.cs" || return 1
    block docs/start/csharp.md xml '<configuration>' | sed -e "s|\.\./ramway/target/csharp/package|$packages|" -e 's|<packageSources>|&<clear />|' >"$tmp/csharp/nuget.config"
    framework=$(sh bindings/csharp/dotnet.sh --version | sed -e 's/^3\..*/netcoreapp3.1/' -e 's/^\([0-9]*\)\..*/net\1.0/')
    {
        echo '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType>'
        echo "<TargetFramework>$framework</TargetFramework><RollForward>Major</RollForward><UseAppHost>false</UseAppHost>"
        echo "<LangVersion>8.0</LangVersion></PropertyGroup><ItemGroup><PackageReference Include=\"Ramway\" Version=\"$version\" /></ItemGroup></Project>"
    } >"$tmp/csharp/first.csproj"
    cd "$tmp/csharp" && NUGET_PACKAGES="$tmp/csharp/packages" && export NUGET_PACKAGES &&
        sh "$root/bindings/csharp/dotnet.sh" build -c Release "-p:RestoreConfigFile=$tmp/csharp/nuget.config" first.csproj &&
        program="timeout 60 sh $root/bindings/csharp/dotnet.sh exec bin/Release/$framework/first.dll" &&
        both 'message 3' "$program" "$program receive"
)
package_csharp() { pack "c#: NuGet package and symbols" pack_csharp && try "c#: the first program" try_csharp; }
