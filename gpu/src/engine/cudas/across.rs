//! Copies from device to device, and the order between their streams.

use tercet_core::number::Plain;

use crate::engine::stream::Event;
use crate::engine::timeline::Queued;
use crate::engine::{Cuda, CudaError, DeviceBuffer};

/// Makes later work of any of these devices wait for all earlier work of all of them.
pub(in crate::engine) fn meet(devices: &[&Cuda]) -> Result<(), CudaError> {
    let mark = |cuda: &&Cuda| {
        let mark = Event::new(&cuda.context)?;
        mark.record(&cuda.stream)?;
        Ok(mark)
    };
    let marks = devices.iter().map(|cuda| cuda.named(mark(cuda)));
    let marks = marks.collect::<Result<Vec<_>, _>>()?;
    for (at, cuda) in devices.iter().enumerate() {
        for (other, mark) in marks.iter().enumerate() {
            if at != other {
                cuda.named(cuda.stream.wait_for(mark))?;
            }
        }
    }
    Ok(())
}

/// Copies `len` elements of one device's buffer to another's; each side has its own start.
///
/// The copy is queued on the stream of `to` if that device reaches the other's memory; otherwise it goes through pinned
/// memory of the host. The caller must queue work that writes the source or uses the target before the devices last met
/// ([`meet`]), and work that changes either, or returns a buffer, after they meet again.
pub(in crate::engine) fn across<T: Plain + Default>(
    reaches: bool,
    (from, source, first): (&mut Cuda, &DeviceBuffer<T>, usize),
    (to, target, place): (&mut Cuda, &mut DeviceBuffer<T>, usize),
    len: usize,
) -> Result<(), CudaError> {
    if len == 0 {
        return Ok(());
    }
    if !reaches {
        let mut values = vec![T::default(); len];
        let read = from.read_at(source, first, &mut values);
        from.named(read)?;
        let written = to.write_at(&values, target, place);
        return to.named(written);
    }
    let source = from.named(source.part(&from.pool, first, len))?;
    let target = to.named(target.part(&to.pool, place, len))?;
    let bytes = len * size_of::<T>();
    let copied = to.stream.marked(Queued::Copy(bytes), || {
        to.context.call("cuMemcpyPeerAsync", |api| {
            let (there, here) = (from.context.handle(), to.context.handle());
            // SAFETY: both buffers have as many bytes from there on, in pools that the other device may use. The caller
            // sees to it that neither is written or given back before the copy is done.
            unsafe { api.cuMemcpyPeerAsync(target, here, source, there, bytes, to.stream.handle()) }
        })
    });
    to.named(copied)
}
