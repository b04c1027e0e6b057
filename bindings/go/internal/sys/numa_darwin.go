package sys

// PreferNode: there is no such thing.
func PreferNode(_ int, _, _ int64, _ int) error {
	return &SettingError{"NUMANode: macOS cannot be asked for it; leave the option out"}
}
