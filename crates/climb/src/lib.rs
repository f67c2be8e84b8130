//! climb
