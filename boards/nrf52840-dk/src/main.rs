//! A microphone node on Nordic's nRF52840 DK: a PDM microphone at P0.30 (clock) and
//! P0.31 (data), and the link to the hub on the debugger's serial port (1 Mbaud).
//! Logs go to the debug probe (defmt over RTT).
#![no_std]
#![no_main]

use core::task::Poll;

use cortex_m::peripheral::{DCB, DWT};
use defmt::info;
use defmt_rtt as _;
use earwitness_api::node::BLOCK_SAMPLES;
use earwitness_firmware::{Block, Board, Node};
use embassy_executor::Spawner;
use embassy_futures::{poll_once, select::select};
use embassy_nrf::buffered_uarte::{self, BufferedUarte, BufferedUarteRx, BufferedUarteTx};
use embassy_nrf::pdm::{self, Frequency, Pdm, SamplerState};
use embassy_nrf::peripherals::{PDM, UARTE0};
use embassy_nrf::{bind_interrupts, pac, uarte};
use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, channel::Channel};
use panic_probe as _;
use static_cell::{ConstStaticCell, StaticCell};

bind_interrupts!(struct Interrupts {
    PDM => pdm::InterruptHandler<PDM>;
    UARTE0 => buffered_uarte::InterruptHandler<UARTE0>;
});

/// Blocks between the microphone and the node: 40 ms.
static RECORDED: Channel<CriticalSectionRawMutex, Block, 4> = Channel::new();

static NODE: StaticCell<Node> = StaticCell::new();
static RECEIVED: ConstStaticCell<[u8; 64]> = ConstStaticCell::new([0; 64]);
static SENDING: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let chip = embassy_nrf::init(Default::default());
    let mut core = cortex_m::Peripherals::take().expect("nobody took them before");
    count_cycles(&mut core.DCB, &mut core.DWT);

    let mut config = pdm::Config::default();
    // 1.28 MHz over a ratio of 80 is 16 kHz.
    config.frequency = Frequency::_1280K;
    let microphone = Pdm::new(chip.PDM, Interrupts, chip.P0_30, chip.P0_31, config);
    spawner.spawn(record(microphone).expect("it is spawned once"));

    let mut config = uarte::Config::default();
    config.baudrate = uarte::Baudrate::Baud1m;
    let link = BufferedUarte::new(
        chip.UARTE0,
        chip.TIMER0,
        chip.PPI_CH0,
        chip.PPI_CH1,
        chip.PPI_GROUP0,
        chip.P0_08,
        chip.P0_06,
        Interrupts,
        config,
        RECEIVED.take(),
        SENDING.take(),
    );
    let (receiver, sender) = link.split();
    let id = pac::FICR.deviceid(0).read();
    info!("node {=u32:08x} listens", id);
    let node = NODE.init_with(|| Node::new(id));
    let mut board = Dk { receiver, sender };
    loop {
        while node.step(&mut board) {}
        // Whatever still waits for the link goes with the next block.
        let _ = select(RECORDED.ready_to_receive(), board.receiver.fill_buf()).await;
    }
}

/// Records for ever. Blocks that find the queue full are lost; the next one's stamp
/// tells.
#[embassy_executor::task]
async fn record(mut microphone: Pdm<'static>) {
    let mut buffers = [[0; BLOCK_SAMPLES]; 2];
    let mut sample = 0;
    let ended = microphone
        .run_task_sampler(&mut buffers, |&samples| {
            let _ = RECORDED.try_send(Block { sample, samples });
            sample += BLOCK_SAMPLES as u64;
            SamplerState::Sampled
        })
        .await;
    defmt::panic!("the microphone stopped: {}", ended);
}

fn count_cycles(dcb: &mut DCB, dwt: &mut DWT) {
    dcb.enable_trace();
    dwt.enable_cycle_counter();
}

/// The board as the node sees it.
struct Dk {
    receiver: BufferedUarteRx<'static>,
    sender: BufferedUarteTx<'static>,
}

impl Board for Dk {
    fn capture(&mut self) -> Option<Block> {
        RECORDED.try_receive().ok()
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        // A full buffer is an error here; it takes bytes again later.
        self.sender.try_write(bytes).unwrap_or(0)
    }

    fn read(&mut self) -> Option<u8> {
        let Poll::Ready(Ok(bytes)) = poll_once(self.receiver.fill_buf()) else {
            return None;
        };
        let byte = bytes.first().copied();
        self.receiver.consume(byte.iter().len());
        byte
    }

    fn ticks(&mut self) -> u32 {
        DWT::cycle_count()
    }

    fn stack_bytes(&self) -> u32 {
        stack::used_bytes()
    }
}
